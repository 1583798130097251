"""The static site: it renders decisions and register rows, and computes nothing."""
