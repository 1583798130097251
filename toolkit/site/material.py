"""What the site is made of: all of it comes in here, the head of its front page and citations among it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.findings import FILE as FINDINGS
from toolkit.findings import Finding
from toolkit.prereg.registration import Registration
from toolkit.prereg.verification import Verification
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study
from toolkit.site.checking import is_address
from toolkit.site.page import Entry, Link, Page, Piece
from toolkit.structs import Document

FILE = "site.toml"
T = TypeVar("T")


class Front(Document, frozen=True):
    """The head of the front page."""

    title: str  # name of the site
    question: str  # what was asked
    order: tuple[str, ...] = ()  # studies in the order in which the site shows them; others follow
    links: dict[str, str] = msgspec.field(default_factory=dict)  # words → address, at the foot of every page
    # Study → address of its dataset at its revision, on the study's pages
    datasets: dict[str, str] = msgspec.field(default_factory=dict)
    exhibits: tuple[str, ...] = ()  # names of what the project shows beside them, in order

    def __post_init__(self) -> None:
        if wrong := [address for address in self.addresses if not is_address(address)]:
            raise ValueError(f"not a plain address, https:// with a host and a path: {wrong}")

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where pages may lead outside the site: to these, and to what lies below them."""
        return (*self.links.values(), *self.datasets.values())

    def place(self, study: str) -> int:
        """Return where a study stands in the order."""
        return self.order.index(study) if study in self.order else len(self.order)


def read_toml(kind: type[T], path: Path, problem: str, remedy: str | None = None) -> T | None:
    """Return a file of what a project writes for its site, as its type has it; None where there is none."""
    if not path.is_file():
        return None
    try:
        return msgspec.toml.decode(read_text(path), type=kind)
    except ValueError as wrong:
        raise DamagedError(problem, found=wrong, where=path, remedy=remedy) from None


def read_front(cards: Path) -> Front | None:
    """Read the head of the front page; None where the project has none."""
    remedy = f"what was found stands in {FINDINGS}, beside it"
    return read_toml(Front, cards / FILE, "the head of the front page cannot be read", remedy)


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


@dataclass(frozen=True)
class Exhibit:
    """What a project shows beside its studies."""

    # The Python package with its folders `templates` and `assets`; a style sheet there is added to the
    # site's
    package: str
    pages: Callable[["Material"], Iterable[Page]] = lambda _: ()  # gives its pages
    entry: Entry | None = None  # its entry of the navigation
    front: Callable[["Material"], Iterable[Piece]] = lambda _: ()  # gives its pieces of the front page
    # Topic → the link that pages which touch on it show
    explains: Mapping[str, Link] = field(default_factory=dict)


@dataclass(frozen=True)
class Material:
    """Everything that a site is made of."""

    cases: tuple[Case, ...]  # the studies with runs, decided by their registrations
    studies: tuple[Study, ...] = ()  # every study, those that hold tasks alone included
    verifications: tuple[Verification, ...] = ()  # what can be said of the registrations
    front: Front | None = None  # the head of the front page
    findings: tuple[Finding, ...] = ()  # what the studies found, in sentences
    # Study → how certain its probe's figures are, in the rows of `probe_intervals`; computed where single
    # tasks' figures allow it and the study holds none
    probe_figures: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    registrations: tuple[Registration, ...] = ()  # every frozen registration, those without a study included
    # Study → run → documents of a few of its episodes, played again; or why there are none
    played: Mapping[str, Mapping[str, Sequence[Mapping[str, object]] | str]] = field(default_factory=dict)
    played_how: str = ""  # by which rule these were chosen, in words
    exhibits: tuple[Exhibit, ...] = ()  # what the project shows beside them
    # The folder of what the project itself writes, for its exhibits; None where there is none
    cards: Path | None = None
    citation: Citation | None = None  # how the project and its paper are cited
    # Waits until the studies are checked whole, which goes on beside; raises what was found
    wait: Callable[[], object] = lambda: None

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that pages come from beside this one, each once."""
        return tuple(dict.fromkeys(exhibit.package for exhibit in self.exhibits))
