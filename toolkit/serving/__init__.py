"""Serving the back office to agents that live elsewhere."""
