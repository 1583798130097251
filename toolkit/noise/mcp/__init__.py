"""Noise in front of a server of the Model Context Protocol."""
