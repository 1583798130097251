"""What the site is called, what it asks and where it leads; and how the project and its paper are cited."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.findings import FILE as FINDINGS
from toolkit.site.checking import is_address

FILE = "site.toml"


@dataclass(frozen=True)
class Front:
    """The head of the front page."""

    title: str  # name of the site
    question: str  # what was asked
    order: tuple[str, ...] = ()  # studies in the order in which the site shows them; others follow
    links: Mapping[str, str] = field(default_factory=dict)  # words → address, at the foot of every page
    # Study → address of its dataset at its revision, on the study's pages
    datasets: Mapping[str, str] = field(default_factory=dict)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where pages may lead outside the site: to these, and to what lies below them."""
        return (*self.links.values(), *self.datasets.values())

    exhibits: tuple[str, ...] = ()  # names of what the project shows beside them, in order

    def place(self, study: str) -> int:
        """Return where a study stands in the order."""
        return self.order.index(study) if study in self.order else len(self.order)


def read_front(cards: Path) -> Front | None:
    """Read the head of the front page; None where the project has none."""
    path = cards / FILE
    if not path.is_file():
        return None
    try:
        document = tomllib.loads(read_text(path))
        front = Front(**document | {name: tuple(document.get(name, ())) for name in ("order", "exhibits")})
        wrong = [address for address in front.addresses if not is_address(address)]
    except (tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
        raise DamagedError(
            "the head of the front page cannot be read",
            expected="title, question, order, exhibits, [links], [datasets]",
            found=str(error),
            where=path,
            remedy=f"what was found stands in {FINDINGS}, beside it",
        ) from None
    if wrong:
        raise DamagedError(
            "the site leads to an address that is not plain",
            expected="https://, a host and a path",
            found=", ".join(map(repr, wrong)),
            where=path,
        )
    return front


CITATION = "CITATION.cff"
# What BibTeX would take for its own.
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "&%$#_{}"} | {"\\": r"\textbackslash{}"})


@dataclass(frozen=True)
class Work:
    """Something that can be cited."""

    title: str  # of the work
    authors: tuple[str, ...]  # names, the family name last; a group's is one name
    bibtex: str  # the work as an entry of BibTeX


@dataclass(frozen=True)
class Citation:
    """What may be cited."""

    text: str  # of the file
    project: Work  # the work that the file stands beside
    papers: tuple[Work, ...]  # the works that it reports

    @property
    def bibtex(self) -> str:
        """Every work as an entry of BibTeX, the papers first."""
        return "\n\n".join(work.bibtex for work in (*self.papers, self.project))


def read_citation(folder: Path) -> Citation | None:
    """Read what may be cited; None where a project says nothing of it."""
    path = folder / CITATION
    if not path.is_file():
        return None
    text = read_text(path)
    try:
        document = yaml.safe_load(text)
        return Citation(text, _work(document), tuple(map(_work, document.get("references", ()))))
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise DamagedError(
            "the citation cannot be read",
            expected="title, authors, and the same of every reference",
            found=f"{type(error).__name__}: {error}",
            where=path,
        ) from None


def _work(document: dict[str, Any]) -> Work:
    people, title = document["authors"], document["title"]
    authors = tuple(_name(person) for person in people)
    family = people[0].get("family-names") or people[0]["name"]
    fields = {
        "author": " and ".join(f"{{{_text(p['name'])}}}" if "name" in p else _text(_name(p)) for p in people),
        "title": f"{{{_text(title)}}}",
        "version": _text(document.get("version", "")),
        "note": _text(document.get("status", "")).capitalize(),
        "url": document.get("url") or document.get("repository-code", ""),
    }
    kind = "software" if document.get("type") == "software" else "misc"
    key = re.sub(r"[^\w-]|_", "", f"{family.split()[-1]}-{'-'.join(title.split()[:4])}".lower())
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items() if value)
    return Work(title, authors, f"@{kind}{{{key},\n{lines}\n}}")


def _name(person: dict[str, str]) -> str:
    return person.get("name") or f"{person['given-names']} {person['family-names']}"


def _text(value: object) -> str:
    return str(value).translate(_MARKS)
