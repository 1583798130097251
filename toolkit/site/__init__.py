"""The static site: it renders decisions and register rows, and decides nothing."""
