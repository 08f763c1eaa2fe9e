"""Staging: one immutable template repository for each eval and condition, and fresh clones of it."""
