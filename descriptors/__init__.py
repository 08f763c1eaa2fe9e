"""Harness descriptors: everything about an agent CLI that is not code."""
