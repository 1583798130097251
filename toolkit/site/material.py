"""What the site is made of: all of it comes in here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.decisions.case import Case
from toolkit.findings import Finding
from toolkit.prereg.registration import Registration
from toolkit.prereg.verification import Verification
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study
from toolkit.site.front import Citation, Front
from toolkit.site.page import Entry, Link, Page, Piece


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

    def verifications_of(self, case: Case) -> Sequence[Verification]:
        """Return what can be said of a study's registration."""
        return [v for v in self.verifications if v.registration == case.registration.name]
