"""A tampering: what is done to a study, and what is expected of the message that names it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.tampering.forger import Forger

SMALL, LARGE = "tiny-lm", "embedded"
Drawn = tuple[str, str, int]
"""Run, table and position of a row in its file."""


@dataclass(frozen=True)
class Tampering:
    """One tampering, by name."""

    name: str  # what is done, as it stands in SECURITY.md
    study: str  # the shipped study of which a copy is tampered with
    do: Callable[[Forger], object]  # does it, and recomputes every hash that it can
    names: tuple[str, ...] = ()  # one of these stands in the message of whatever command notices
    rule: str = "H2a"  # the rule that is decided
    # A changed row that an audit can play or derive again; None where there is none
    drawn: Drawn | None = None
    quick: bool = False  # whether it belongs to the quick core
    limit: str = ""  # why nothing in the rows or the registration contradicts it; empty where something does


def small(name: str, do: Callable[[Forger], object], *names: str, **facts: Any) -> Tampering:
    """Return a tampering with the small study."""
    return Tampering(name, SMALL, do, names, **facts)


def core(name: str, do: Callable[[Forger], object], *names: str, **facts: Any) -> Tampering:
    """Return one that belongs to the quick core."""
    return small(name, do, *names, quick=True, **facts)
