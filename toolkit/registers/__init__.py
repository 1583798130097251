"""Registers: append-only typed tables with a manifest, each a Hugging Face dataset repository."""
