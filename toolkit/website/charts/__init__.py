"""Charts: Altair, one theme, inline SVG that needs no script."""
