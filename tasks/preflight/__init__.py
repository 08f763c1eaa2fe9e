"""Preflight: what would spoil the campaign is found before money is spent."""
