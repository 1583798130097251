"""Pages of one kind, rendered as the site renders them."""

import html
import re
from collections.abc import Iterable
from typing import Any

from toolkit.website.environment import environment
from toolkit.website.page import POLICY, Page

SHARED: dict[str, Any] = {
    "version": "0",
    "policy": POLICY,
    "frozen": "",
    "menu": (),
    "site_title": "A site",
}


def rendered(page: Page, names: Iterable[str] = ()) -> str:
    """Return a page's text, as if the site had these pages beside it."""
    template = environment().get_template(page.template)
    known = {page.name, *names}
    return template.render(**SHARED, page=page, root=page.root, names=known, **page.context)


def words(text: str) -> str:
    """Return what a reader sees of a page."""
    bare = re.sub(r"<script.*?</script>|<svg.*?</svg>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())
