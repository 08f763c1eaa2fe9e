"""Dispatch: one attempt at a cell, from a fresh clone to its written record."""
