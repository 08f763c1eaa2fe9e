"""Turns recipes into a shopping list."""
