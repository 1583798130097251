"""Pages, one module a kind: each yields its pages from the material of the site."""
