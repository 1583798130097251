"""Charts: one theme, inline SVG that needs no script."""
