"""A new study: its scaffold, its task pools, an imported table."""
