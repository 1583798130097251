"""From the material of the site to every page's text."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import toolkit
from toolkit.errors import UsageError
from toolkit.website.charts.drawing import Chart, draw_all
from toolkit.website.environment import environment
from toolkit.website.front import Front
from toolkit.website.headings import with_contents
from toolkit.website.material import Material
from toolkit.website.page import POLICY, Page, registration_page, study_page
from toolkit.website.pages import (
    data,
    foreign,
    home,
    luck,
    paper,
    probe,
    registration,
    rule,
    run,
    study,
    theory,
    world,
)
from toolkit.website.search import SCRIPT, search_script

VERSIONS = "versions.html"
MAKERS = (home, rule, registration, study, probe, luck, theory, world, foreign, paper, data, run)


def render(material: Material, progress: Callable[[str], None], frozen: str = "") -> dict[str, str]:
    """Return every page's text by its name, and what the search finds among them.

    Args:
        material: what the site is made of.
        progress: called with the name of each page.
        frozen: the version that the pages are frozen as; empty for the current ones.

    Raises:
        UsageError: two pages have one name: a study, a rule or a registration has to have another.
    """
    from altair.utils import schemapi

    templates = environment()
    with schemapi.debug_mode(arg=False):  # to hold charts to their schema takes longer than to draw them
        pages = list(all_pages(material))
    draw_all(chart for page in pages for chart in _charts(page.context))
    front = material.front or Front("Registered outcomes", "")
    shared: dict[str, Any] = {
        "version": toolkit.__version__,
        "policy": POLICY,
        "frozen": frozen,
        "menu": navigation(material, {page.name for page in pages}),
        "site_title": front.title,
        "description": front.question,
        "links": front.links,
        "datasets": front.datasets,
        "citation": material.citation,
        "names": {page.name for page in pages},
    }
    texts: dict[str, str] = {}
    for number, page in enumerate(pages, 1):
        progress(f"page {number} of {len(pages)}, {page.name}")
        if page.name in texts:
            raise UsageError("two pages of the site have one name", found=page.name)
        template = templates.get_template(page.template)
        text = template.render(**shared, page=page, root=page.root, **page.context)
        texts[page.name] = with_contents(text, page.name)
    return {**texts, SCRIPT: search_script(pages)}


def all_pages(material: Material) -> Iterator[Page]:
    """Yield every page, the front page first."""
    names = set()
    for maker in MAKERS:
        for page in maker.pages(material):
            names.add(page.name)
            yield page
    yield from _pages_of_versions(material, names)


def _charts(shown: object) -> Iterator[Chart]:
    """Yield the charts in what a page shows, however deep they stand."""
    if isinstance(shown, Chart):
        yield shown
    elif isinstance(shown, dict):
        yield from _charts(tuple(shown.values()))
    elif isinstance(shown, list | tuple):
        for part in shown:
            yield from _charts(part)


@dataclass(frozen=True)
class Entry:
    """An entry of the navigation: its section, its words, its page; or the pages that it unfolds, by name."""

    section: str
    label: str
    target: str = ""
    pages: tuple[tuple[str, str], ...] = ()


def navigation(material: Material, names: Collection[str]) -> tuple[Entry, ...]:
    """Return the entries whose pages the site has."""
    return tuple(entry for entry in _entries(material) if entry.pages or entry.target in names)


def _entries(material: Material) -> Iterator[Entry]:
    yield Entry("home", "Outcomes", "index.html")
    studies = tuple((case.study.name, study_page(case.study.name)) for case in material.cases)
    yield Entry("study", "Studies", pages=studies)
    for case in material.cases[:1]:
        yield Entry("registration", "Registration", registration_page(case.registration.name))
    yield Entry("theory", "Theory", "theory.html")
    yield Entry("world", "World", "world.html")
    yield Entry("paper", "Paper", "paper.html")
    yield Entry("data", "Data", "data.html")


def _pages_of_versions(material: Material, current: Collection[str]) -> Iterator[Page]:
    """Yield the pages about frozen versions; none where there are none.

    Args:
        material: what the site is made of.
        current: names of all other pages. Frozen pages link to theirs: where one is gone, a page says so.
    """
    if not material.versions:
        return
    yield Page(VERSIONS, "versions.html", "Frozen versions", "versions", {"versions": material.versions})
    having: dict[str, list[str]] = {}
    for version in material.versions:
        for name in version.pages:
            having.setdefault(name, []).append(version.name)
    for name in sorted(set(having) - set(current)):
        yield Page(name, "gone.html", "No longer here", "versions", {"having": having[name]})
