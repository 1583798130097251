"""RFC 3161 tokens: what one says, and whether it can be believed."""
