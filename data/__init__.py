"""Data at rest: what people write, what the store keeps, and how every table is declared."""
