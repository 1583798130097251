"""Exports, each held against the other project's own schema or reader, and against the registers."""
