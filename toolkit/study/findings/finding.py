"""A finding: numbers computed from registers, and one passage on what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

LABEL = "secondary: changes no verdict"

Numbers: TypeAlias = dict[str, float | int | str | list[Any]]


class Unavailable(Exception):  # noqa: N818 - no error: the study has other rows
    """The study lacks what a finding needs; the message says what."""


@dataclass(frozen=True)
class Analysis:
    """What the computation of a finding gives; arguments as those of `Finding`."""

    numbers: Numbers
    sentence: str
    source: str


@dataclass(frozen=True)
class Finding:
    """One secondary analysis.

    Args:
        id: short name.
        title: what it is about.
        numbers: name → number, text, or a list of them; empty where it is not evaluable.
        sentence: what the numbers mean, or why there are none.
        source: tables it was computed from, and the method.
        status: whether it was computed.
    """

    id: str
    title: str
    numbers: Numbers
    sentence: str
    source: str
    status: Literal["computed", "not_evaluable"] = "computed"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {
            "id": self.id,
            "title": self.title,
            "label": LABEL,
            "status": self.status,
            "numbers": self.numbers,
            "sentence": self.sentence,
            "source": self.source,
        }


def span(values: list[float], digits: int = 3) -> str:
    """Return the range of some numbers as text."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"
