"""The main navigation: the sections that a site has, each with its first page."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from toolkit.website.material import Material
from toolkit.website.page import luck_page, probe_page, registration_page, study_page


@dataclass(frozen=True)
class Entry:
    """An entry of the navigation: its section, its words, its page."""

    section: str
    label: str
    target: str


def navigation(material: Material, names: Collection[str]) -> tuple[Entry, ...]:
    """Return the entries whose pages the site has."""
    return tuple(entry for entry in _entries(material) if entry.target in names)


def _entries(material: Material) -> Iterator[Entry]:
    yield Entry("home", "Outcomes", "index.html")
    for case in material.cases:
        yield Entry(f"study {case.study.name}", f"Study {case.study.name}", study_page(case.study.name))
    for case in material.cases[:1]:
        yield Entry("registration", "Registration", registration_page(case.registration.name))
        yield Entry("probe", "Probe", probe_page(case.study.name))
        yield Entry("luck", "Luck", luck_page(case.study.name))
    yield Entry("theory", "Theory", "theory.html")
    yield Entry("world", "World", "world.html")
    yield Entry("paper", "Paper", "paper.html")
    yield Entry("data", "Data", "data.html")
