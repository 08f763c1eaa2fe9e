"""Grading: assertions are decided on what an attempt left behind."""
