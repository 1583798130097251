"""From the material of the site to every page's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import toolkit
from toolkit.errors import UsageError
from toolkit.website.environment import environment
from toolkit.website.navigation import navigation
from toolkit.website.pages import (
    costs,
    data,
    home,
    luck,
    paper,
    probe,
    registration,
    rule,
    run,
    study,
    theory,
    versions,
    world,
)
from toolkit.website.policy import POLICY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.website.material import Material
    from toolkit.website.page import Page

# The last has most charts: a second process can draw them ahead.
MAKERS = (home, rule, registration, study, probe, luck, theory, world, paper, data, costs, run)


def render(material: Material, progress: Callable[[str], None], frozen: str = "") -> dict[str, str]:
    """Return every page's text by its name.

    Args:
        material: what the site is made of.
        progress: called with the name of each page.
        frozen: the version that the pages are frozen as; empty for the current ones.

    Raises:
        UsageError: two pages have one name: a study, a rule or a registration has to have another.
    """
    templates = environment()
    listed = list(all_pages(material))
    shared: dict[str, Any] = {
        "version": toolkit.__version__,
        "policy": POLICY,
        "frozen": frozen,
        "menu": navigation(material, {page.name for page in listed}),
        "site_title": material.front.title if material.front else "Registered outcomes",
        "names": {page.name for page in listed},
    }
    texts: dict[str, str] = {}
    for page in listed:
        progress(page.name)
        if page.name in texts:
            raise UsageError("two pages of the site have one name", found=page.name)
        template = templates.get_template(page.template)
        texts[page.name] = template.render(**shared, page=page, root=page.root, **page.context)
    return texts


def all_pages(material: Material) -> Iterator[Page]:
    """Yield every page, the front page first."""
    names = set()
    for maker in MAKERS:
        for page in maker.pages(material):
            names.add(page.name)
            yield page
    yield from versions.pages(material, names)
