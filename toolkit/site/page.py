"""What a page is, and how every page finds the others."""

import re
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_DIGITS = 24
# Pages that stand beside those of a study's rules; some file systems take no notice of case.
_BESIDE_RULES = ("index", "probe", "luck")


@dataclass(frozen=True)
class Page:
    """A page before it is rendered."""

    name: str  # its place in the site, with slashes
    template: str  # the template that renders it
    title: str  # what it is, for the browser's tab
    section: str  # the entry of the main navigation that it belongs to
    context: dict[str, Any] = field(default_factory=dict)  # what the template shows
    # Browser scripts that it loads, by the name of their entry file, beside `site`
    scripts: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The way from here to the root of the site; empty, or ends with a slash."""
        return "../" * (len(PurePosixPath(self.name).parts) - 1)


@dataclass(frozen=True)
class Entry:
    """An entry of the navigation: its section, its words, its page; or the pages that it unfolds, by name."""

    section: str
    label: str
    target: str = ""
    pages: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Link:
    """A link that other pages show: its words, and the page that it leads to."""

    words: str
    target: str


@dataclass(frozen=True)
class Piece:
    """A piece of the front page: its template, and what that shows as `shown`."""

    template: str
    shown: dict[str, Any]


def slug(name: str) -> str:
    """Return what a name is called in addresses: itself, or a digest where it could be more than a name."""
    return name if _PLAIN.fullmatch(name) else _digest(name)


def _digest(name: str) -> str:
    return f"x-{sha256(name.encode()).hexdigest()[:_DIGITS]}"


def study_page(study: str) -> str:
    """Return the name of a study's page."""
    return f"{study}/index.html"


def rule_page(study: str, rule: str) -> str:
    """Return the name of a rule's page."""
    return f"{study}/{rule_file(rule)}"


def rule_file(rule: str) -> str:
    """Return the name of a rule's page beside the other pages of its study."""
    return f"{_digest(rule) if rule.casefold() in _BESIDE_RULES else rule}.html"


def run_page(study: str, run_id: str) -> str:
    """Return the name of a run's page."""
    return f"{study}/runs/{slug(run_id)}.html"


def counts_of(phase: str, pool: str, regime: str) -> str:
    """Return the id, on a run's page, of its counts on one evaluation set."""
    return f"counts-{slug(f'{phase}.{pool}.{regime}')}"


def registration_page(registration: str) -> str:
    """Return the name of a registration's page."""
    return f"registrations/{slug(registration)}.html"


def probe_page(study: str) -> str:
    """Return the name of a study's probe page."""
    return f"{study}/probe.html"


def luck_page(study: str) -> str:
    """Return the name of a study's page of luck shares and training groups."""
    return f"{study}/luck.html"


# Written into every page, and sent with it by `toolkit site serve`. No page's text holds a script or a style.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
