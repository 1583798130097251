"""How often a registered rule would pass."""
