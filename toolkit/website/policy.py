"""What a page of the site may load: its own scripts, its own style sheet, and nothing from anywhere else."""

# Written into every page, and sent with it by `toolkit site serve`. No page's text holds a script or a style.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
