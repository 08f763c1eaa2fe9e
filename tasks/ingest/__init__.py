"""Ingest: an agent's event stream becomes rows of the declared tables."""
