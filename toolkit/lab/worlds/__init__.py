"""Foreign worlds: tools and tasks of other projects, under the same noise."""
