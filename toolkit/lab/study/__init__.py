"""Studies: what they are made of, and how their registers come about."""
