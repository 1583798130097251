"""A tampering: what is done to a study, and what is expected of the message that names it."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.tampering.forger import Forger

Drawn = tuple[str, str, int]
"""Run, table and position of a row in its file."""


@dataclass(frozen=True)
class Tampering:
    """One tampering, by name.

    Args:
        name: what is done, as it stands in SECURITY.md.
        study: the shipped study of which a copy is tampered with.
        do: does it, and recomputes every hash that it can.
        names: one of these stands in the message of whatever command notices.
        rule: the rule that is decided.
        drawn: a changed row that an audit can play or derive again; None where there is none.
        quick: whether it belongs to the quick core.
        limit: why nothing in the rows or the registration contradicts it; empty where something does.
    """

    name: str
    study: str
    do: Callable[[Forger], object]
    names: tuple[str, ...] = ()
    rule: str = "H2a"
    drawn: Drawn | None = None
    quick: bool = False
    limit: str = ""
