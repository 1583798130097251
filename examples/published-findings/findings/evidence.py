"""What a finding is, and what it reads of a study: rows, counted runs, learning curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.decisions.measure import Registers, Row

LABEL = "secondary: changes no verdict"
DECIDING_ROLES = ("pilot", "primary", "reference")
PAIRED, INDEPENDENT = "paired", "independent"

# A learning curve: training step → share of successes, exactly.
Curve = dict[int, Fraction]
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


@dataclass(frozen=True)
class Evidence:
    """A study's rows, each table read and checked once.

    Args:
        study: the opened study.
    """

    study: Registers
    _tables: dict[str, Sequence[Row]] = field(default_factory=dict, repr=False, compare=False)

    def rows(self, table: str) -> Sequence[Row]:
        """Return a table's rows."""
        if not self.study.has(table):
            raise Unavailable(f"the study has no table {table!r}")
        if table not in self._tables:
            self._tables[table] = self.study.rows(table)
        if not self._tables[table]:
            raise Unavailable(f"table {table!r} has no row")
        return self._tables[table]

    def runs(self, condition: str, arm: str) -> dict[int, Row]:
        """Return the counted runs of one arm, by seed."""
        found: dict[int, Row] = {}
        for row in self.rows("runs"):
            if not _counts(row, condition, arm):
                continue
            if row["seed"] in found:
                raise Unavailable(f"two counted runs of {condition}, {arm}, seed {row['seed']}")
            found[row["seed"]] = row
        if not found:
            raise Unavailable(f"the study has no counted run of {condition}, {arm}")
        return dict(sorted(found.items()))

    def curve(self, run: str, regime: str) -> Curve:
        """Return a run's share of successes by training step on the validation pool."""
        where = {"run_id": run, "regime": regime, "phase": "periodic", "pool": "validation"}
        points = {
            row["step"]: Fraction(row["successes"], row["episodes"])
            for row in self.rows("evaluations")
            if matches(row, where)
        }
        if len(points) < 2:
            raise Unavailable(f"run {run!r} has no learning curve under {regime!r}")
        return dict(sorted(points.items()))

    def differences(self, condition: str, regime: str) -> dict[int, Curve]:
        """Return, by seed, the paired curve minus the independent one."""
        paired, independent = self.runs(condition, PAIRED), self.runs(condition, INDEPENDENT)
        if set(paired) != set(independent) or len(paired) < 2:
            raise Unavailable(f"the arms of {condition} do not share two seeds")
        found = {}
        for seed in paired:
            first = self.curve(paired[seed]["run_id"], regime)
            second = self.curve(independent[seed]["run_id"], regime)
            if set(first) != set(second):
                raise Unavailable(f"the arms of {condition}, seed {seed}, were evaluated at different steps")
            found[seed] = {step: first[step] - second[step] for step in first}
        return found


def matches(row: Row, where: Mapping[str, Any]) -> bool:
    """Whether a row has the given values."""
    return all(row[name] == value for name, value in where.items())


def _counts(row: Row, condition: str, arm: str) -> bool:
    where = {"condition": condition, "arm": arm, "scale_rewards": "group", "status": "COMPLETE"}
    return matches(row, where) and row["role"] in DECIDING_ROLES
