"""The simulated back office: records, an immutable base with changes over it, and thirteen tools."""
