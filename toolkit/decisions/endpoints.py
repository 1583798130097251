"""What is measured: evaluation sets, endpoints and intervals, as declared in the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.decisions.section import Section, strings
from toolkit.errors import RuleError
from toolkit.registers.schema import ARMS, TABLES

if TYPE_CHECKING:
    from fractions import Fraction

UNITS_OF_ANALYSIS = ("seed", "run", "checkpoint", "pooled", "row")


@dataclass(frozen=True)
class EvaluationSet:
    """Which rows of `evaluations` belong to a registered set, and how many episodes a complete one has."""

    name: str
    where: dict[str, str]
    episodes: int | None


@dataclass(frozen=True)
class Rate:
    """A rate of two counts."""

    count: str
    of: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.count, self.of)


@dataclass(frozen=True)
class Figure:
    """A figure of the register, or its ratio over another."""

    figure: str
    over: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.figure, self.over) if self.over else (self.figure,)


@dataclass(frozen=True)
class Endpoint:
    """One endpoint.

    Args:
        id: its name in tests.
        title: what it is, in words.
        register: the table that holds its rows.
        outcome: how a row becomes a number.
        where: text columns that the rows must match, the evaluation set's included.
        episodes: episodes of a complete evaluation, where the set declares it.
        condition, arms, seeds, scale_rewards: which runs; two arms mean first minus second.
        by: what the members of the series are.
        steps: the steps read.
        over_steps: `auc`, `mean`, or empty for a single step.
        checkpoints: `trajectory@step`, for series by checkpoint.
        unit: unit of the values.
        low, high: smallest and largest value it can take.
    """

    id: str
    title: str
    register: str
    outcome: Rate | Figure
    where: dict[str, str]
    episodes: int | None
    condition: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    scale_rewards: str
    by: str
    steps: tuple[int, ...]
    over_steps: str
    checkpoints: tuple[tuple[str, int], ...]
    unit: str
    low: Fraction
    high: Fraction

    @property
    def is_series(self) -> bool:
        """Whether the endpoint is a series rather than one number."""
        return self.by in ("seed", "run", "checkpoint")


@dataclass(frozen=True)
class IntervalSpec:
    """A registered interval of an endpoint's mean."""

    id: str
    endpoint: str
    level: Fraction
    method: str
    resamples: int
    resampled: tuple[str, ...]
    crossing: str
    rng_seed: int


def read_set(name: str, content: object) -> EvaluationSet:
    """Read one evaluation set.

    Raises:
        RuleError: malformed, or a column that `evaluations` does not have.
    """
    section = Section(content, f"sets.{name}")
    where = strings(section.table("where"), section.where)
    _check_columns("evaluations", tuple(where), section.where)
    tasks, schedules = section.whole("tasks", None), section.whole("schedules", None)
    section.done()
    return EvaluationSet(name, where, tasks * schedules if tasks and schedules else None)


def read_endpoint(name: str, content: object, sets: dict[str, EvaluationSet]) -> Endpoint:
    """Read one endpoint.

    Raises:
        RuleError: malformed, an undeclared set, an unknown register or column, or parts that do not fit.
    """
    section = Section(content, f"endpoints.{name}")
    register = section.choice("register", tuple(TABLES))
    named_set = section.text("set", None)
    if named_set and named_set not in sets:
        raise RuleError(
            f"evaluation set {named_set!r} is not declared", expected=", ".join(sets), where=section.where
        )
    chosen = sets[named_set] if named_set else EvaluationSet("", {}, None)
    outcome = _outcome(section.table("outcome"), register, section.where)
    where = {**chosen.where, **strings(section.table("where"), section.where)}
    _check_columns(register, tuple(where), section.where)
    spread = section.texts("range")
    if len(spread) != 2:  # noqa: PLR2004 - a range has two ends
        raise RuleError("'range' has two ends", found=list(spread), where=section.where)
    bounds = Section({"low": spread[0], "high": spread[1]}, f"{section.where}.range")
    low, high = bounds.exact("low"), bounds.exact("high")
    if low is None or high is None or low >= high:
        raise RuleError("'range' does not rise", found=list(spread), where=section.where)
    endpoint = Endpoint(
        id=name,
        title=section.text("title"),
        register=register,
        outcome=outcome,
        where=where,
        episodes=chosen.episodes,
        condition=section.text("condition", ""),
        arms=section.texts("arms", ()),
        seeds=section.wholes("seeds", ()),
        scale_rewards=section.choice("scale_rewards", ("group", "none"), "group"),
        by=section.choice("by", UNITS_OF_ANALYSIS),
        steps=section.wholes("steps", ()),
        over_steps=section.choice("over_steps", ("auc", "mean"), None),
        checkpoints=tuple(_checkpoint(text, section.where) for text in section.texts("checkpoints", ())),
        unit=section.text("unit"),
        low=low,
        high=high,
    )
    section.done()
    _check_fit(endpoint, section.where)
    return endpoint


def read_interval(name: str, content: object, method: dict[str, object]) -> IntervalSpec:
    """Read one interval; what it does not say itself stands in `interval_method`.

    Raises:
        RuleError: malformed.
    """
    if not isinstance(content, dict):
        raise RuleError("a section is not a table", found=content, where=f"intervals.{name}")
    section = Section({**method, **content}, f"intervals.{name}")
    level = section.exact("level")
    if level is None or not 0 < level < 1:
        raise RuleError("a level lies between 0 and 1", found=level, where=section.where)
    spec = IntervalSpec(
        id=name,
        endpoint=section.text("endpoint"),
        level=level,
        method=section.text("method"),
        resamples=section.whole("resamples") or 0,
        resampled=section.texts("resampled"),
        crossing=section.choice("crossing", ("crossed", "nested")),
        rng_seed=section.whole("rng_seed") or 0,
    )
    section.done()
    return spec


def _outcome(content: dict[str, object], register: str, where: str) -> Rate | Figure:
    section = Section(content, f"{where}.outcome")
    outcome: Rate | Figure
    if "count" in content:
        outcome = Rate(section.text("count"), section.text("of"))
    else:
        outcome = Figure(section.text("figure"), section.text("over", None) or None)
    section.done()
    _check_columns(register, outcome.columns, where)
    return outcome


def _check_columns(register: str, columns: tuple[str, ...], where: str) -> None:
    for column in columns:
        if TABLES[register].column(column) is None:
            raise RuleError(
                f"register {register!r} has no column {column!r}",
                expected=", ".join(TABLES[register].column_names),
                where=where,
            )


def _checkpoint(text: str, where: str) -> tuple[str, int]:
    trajectory, at, step = text.partition("@")
    if not (trajectory and at and step.isascii() and step.isdigit()):
        raise RuleError("a checkpoint is written trajectory@step", found=text, where=where)
    return trajectory, int(step)


def _check_fit(endpoint: Endpoint, where: str) -> None:
    by_run = endpoint.by in ("seed", "run", "pooled")
    problems = (
        (
            by_run and not (endpoint.condition and endpoint.arms and endpoint.seeds),
            "needs condition, arms and seeds",
        ),
        (endpoint.by == "checkpoint" and not endpoint.checkpoints, "needs checkpoints"),
        (endpoint.by == "seed" and len(endpoint.arms) not in (1, 2), "has one arm, or two to subtract"),
        (endpoint.by == "pooled" and not isinstance(endpoint.outcome, Rate), "can only pool counts"),
        (endpoint.by == "pooled" and len(endpoint.arms) != 1, "pools one arm"),
        (len(endpoint.steps) > 1 and not endpoint.over_steps, "reads several steps and needs over_steps"),
        (len(endpoint.steps) < 2 and bool(endpoint.over_steps), "has over_steps but not several steps"),  # noqa: PLR2004
        (list(endpoint.steps) != sorted(set(endpoint.steps)), "has steps that do not increase"),
        (any(arm not in ARMS for arm in endpoint.arms), f"has arms other than {', '.join(ARMS)}"),
        (len(set(endpoint.seeds)) != len(endpoint.seeds), "names a seed twice"),
    )
    for wrong, problem in problems:
        if wrong:
            raise RuleError(f"an endpoint by {endpoint.by} {problem}", where=where)
