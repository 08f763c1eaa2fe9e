"""Analysis: fragments become tables, tables become contrasts and verdicts."""
