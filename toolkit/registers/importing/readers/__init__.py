"""Readers of logs: one module a format."""
