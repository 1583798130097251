"""Language models as policies: what they read, what they say, and the episodes that come of it."""
