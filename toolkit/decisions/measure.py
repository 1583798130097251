"""From the rows of a register to the value of an endpoint, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.decisions.endpoints import Rate
from toolkit.decisions.values import Missing, Scalar, Series, together
from toolkit.errors import DamagedError
from toolkit.estimators.auc import auc

if TYPE_CHECKING:
    from toolkit.decisions.endpoints import Endpoint

Row = Mapping[str, Any]


class Registers(Protocol):
    """What the engine needs of a study."""

    @property
    def name(self) -> str:
        """The study's name."""

    @property
    def is_summary(self) -> bool:
        """Whether the study holds published figures only."""

    def has(self, table: str) -> bool:
        """Whether the study has a table."""

    def rows(self, table: str) -> Sequence[Row]:
        """The rows of a table."""

    def sha256(self, table: str) -> str:
        """The logical row hash of a table."""


def measure(endpoint: Endpoint, registers: Registers, roles: Sequence[str]) -> Scalar | Series[Fraction]:
    """Return an endpoint's value.

    Args:
        endpoint: what to measure.
        registers: the study.
        roles: roles of the runs that enter decisions.

    Returns:
        A series by seed, run or checkpoint; one number where the endpoint pools or names a row.

    Raises:
        DamagedError: rows that contradict each other: two deciding runs, or two rows, for one place.
    """
    if not registers.has(endpoint.register):
        absent = Missing(not_run=False, reasons=(f"the study has no register {endpoint.register!r}",))
        return (
            Series(endpoint.by, tuple((m, absent) for m in _members(endpoint)))
            if endpoint.is_series
            else absent
        )
    table = registers.rows(endpoint.register)
    match endpoint.by:
        case "row":
            return _number(endpoint, table, {})
        case "checkpoint":
            return Series(
                "checkpoint",
                tuple(
                    (
                        f"{trajectory}@{step}",
                        _number(endpoint, table, {"trajectory": trajectory, "step": step}),
                    )
                    for trajectory, step in endpoint.checkpoints
                ),
            )
    runs = _runs(endpoint, registers.rows("runs"), roles)
    if endpoint.by == "pooled":
        return _pooled(endpoint, table, runs)
    levels = {place: _level(endpoint, table, run) for place, run in runs.items()}
    if endpoint.by == "run":
        return Series(
            "run",
            tuple(
                (run if isinstance(run, str) else _place(endpoint, *place), levels[place])
                for place, run in runs.items()
            ),
        )
    return Series("seed", tuple((str(seed), _contrast(endpoint, levels, seed)) for seed in endpoint.seeds))


def exact(value: float | Decimal) -> Fraction:
    """Return a stored value exactly; a double counts as the shortest decimal that prints it."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _members(endpoint: Endpoint) -> list[str]:
    match endpoint.by:
        case "seed":
            return [str(seed) for seed in endpoint.seeds]
        case "run":
            return [_place(endpoint, arm, seed) for arm in endpoint.arms for seed in endpoint.seeds]
        case _:
            return [f"{trajectory}@{step}" for trajectory, step in endpoint.checkpoints]


def _place(endpoint: Endpoint, arm: str, seed: int) -> str:
    scaling = "" if endpoint.scale_rewards == "group" else f" with scale_rewards {endpoint.scale_rewards}"
    return f"{endpoint.condition} {arm} seed {seed}{scaling}"


def _runs(
    endpoint: Endpoint, runs: Sequence[Row], roles: Sequence[str]
) -> dict[tuple[str, int], str | Missing]:
    """Find the one deciding run of every arm and seed."""
    found: dict[tuple[str, int], str | Missing] = {}
    for arm in endpoint.arms:
        for seed in endpoint.seeds:
            wanted = {
                "condition": endpoint.condition,
                "arm": arm,
                "seed": seed,
                "scale_rewards": endpoint.scale_rewards,
            }
            matching = [run for run in runs if run["role"] in roles and _matches(run, wanted)]
            place = _place(endpoint, arm, seed)
            if len(matching) > 1:
                raise DamagedError(
                    "two deciding runs stand in one place of the matrix",
                    expected=f"one run for {place}",
                    found=", ".join(run["run_id"] for run in matching),
                    where="runs",
                )
            if not matching:
                found[arm, seed] = Missing(not_run=True, reasons=(f"{place} was not run",))
            elif matching[0]["status"] != "COMPLETE":
                found[arm, seed] = Missing(
                    not_run=False, reasons=(f"{matching[0]['run_id']} is not complete",)
                )
            else:
                found[arm, seed] = str(matching[0]["run_id"])
    # An arm of which no seed was run is a tier left out; a single missing seed is a gap in the evidence.
    begun = {arm for (arm, _), run in found.items() if not (isinstance(run, Missing) and run.not_run)}
    return {
        (arm, seed): Missing(not_run=False, reasons=run.reasons)
        if isinstance(run, Missing) and arm in begun
        else run
        for (arm, seed), run in found.items()
    }


def _contrast(endpoint: Endpoint, levels: Mapping[tuple[str, int], Scalar], seed: int) -> Scalar:
    values = [levels[arm, seed] for arm in endpoint.arms]
    absent = [value for value in values if isinstance(value, Missing)]
    if absent:
        return together(absent)
    first, *second = [value for value in values if not isinstance(value, Missing)]
    return first - second[0] if second else first


def _level(endpoint: Endpoint, table: Sequence[Row], run: str | Missing) -> Scalar:
    """Return one run's number: a single step's, or the summary over the registered steps."""
    if isinstance(run, Missing):
        return run
    if len(endpoint.steps) <= 1:
        return _number(endpoint, table, {"run_id": run, **_single_step(endpoint)})
    by_step = Series(
        "step", tuple((str(s), _number(endpoint, table, {"run_id": run, "step": s})) for s in endpoint.steps)
    ).present()
    if isinstance(by_step, Missing):
        return by_step
    if endpoint.over_steps == "auc":
        return auc(by_step, endpoint.steps)
    return sum(by_step, Fraction(0)) / len(by_step)


def _pooled(
    endpoint: Endpoint, table: Sequence[Row], runs: Mapping[tuple[str, int], str | Missing]
) -> Scalar:
    """Return the rate of the counts of all seeds together."""
    pairs = []
    for run in runs.values():
        row = run if isinstance(run, Missing) else _row(endpoint, table, {"run_id": run})
        pairs.append(row if isinstance(row, Missing) else _counts(endpoint, row))
    absent = [pair for pair in pairs if isinstance(pair, Missing)]
    if absent:
        return together(absent)
    counts = [pair for pair in pairs if not isinstance(pair, Missing)]
    return _quotient(
        sum((c for c, _ in counts), Fraction(0)), sum((o for _, o in counts), Fraction(0)), endpoint
    )


def _number(endpoint: Endpoint, table: Sequence[Row], place: Mapping[str, object]) -> Scalar:
    """Return the endpoint's outcome on the one row at a place."""
    row = _row(endpoint, table, place)
    if isinstance(row, Missing):
        return row
    if isinstance(endpoint.outcome, Rate):
        pair = _counts(endpoint, row)
        return pair if isinstance(pair, Missing) else _quotient(*pair, endpoint)
    figure = _cell(endpoint, row, endpoint.outcome.figure)
    if endpoint.outcome.over is None or isinstance(figure, Missing):
        return figure
    over = _cell(endpoint, row, endpoint.outcome.over)
    return over if isinstance(over, Missing) else _quotient(figure, over, endpoint)


def _row(endpoint: Endpoint, table: Sequence[Row], place: Mapping[str, object]) -> Row | Missing:
    wanted = {**endpoint.where, **place}
    if endpoint.by == "row":
        wanted |= _single_step(endpoint)
    matching = [row for row in table if _matches(row, wanted)]
    described = ", ".join(f"{name}={value}" for name, value in wanted.items())
    if not matching:
        return Missing(not_run=False, reasons=(f"{endpoint.register} has no row with {described}",))
    if len(matching) > 1:
        raise DamagedError(
            f"{endpoint.register} has {len(matching)} rows where the endpoint needs one",
            expected="one row",
            found=described,
            where=f"endpoint {endpoint.id}",
        )
    row = matching[0]
    if endpoint.episodes is not None and row["episodes"] != endpoint.episodes:
        reason = f"expected {endpoint.episodes} episodes, found {row['episodes']} at {described}"
        return Missing(not_run=False, reasons=(reason,))
    return row


def _single_step(endpoint: Endpoint) -> dict[str, int]:
    return {"step": endpoint.steps[0]} if endpoint.steps else {}


def _counts(endpoint: Endpoint, row: Row) -> tuple[Fraction, Fraction] | Missing:
    if not isinstance(endpoint.outcome, Rate):
        raise TypeError(endpoint.outcome)
    count, of = _cell(endpoint, row, endpoint.outcome.count), _cell(endpoint, row, endpoint.outcome.of)
    if isinstance(count, Missing) or isinstance(of, Missing):
        return together([value for value in (count, of) if isinstance(value, Missing)])
    return count, of


def _cell(endpoint: Endpoint, row: Row, column: str) -> Scalar:
    value = row[column]
    if value is None:
        place = row.get("run_id") or ", ".join(f"{k}={v}" for k, v in endpoint.where.items())
        return Missing(not_run=False, reasons=(f"{endpoint.register}.{column} of {place} was not published",))
    if not isinstance(value, int | float | Decimal):
        raise DamagedError(
            f"{endpoint.register}.{column} is no number", found=repr(value), where=f"endpoint {endpoint.id}"
        )
    return exact(value)


def _quotient(above: Fraction, below: Fraction, endpoint: Endpoint) -> Scalar:
    if below == 0:
        return Missing(not_run=False, reasons=(f"{endpoint.id} is a quotient over zero",))
    return above / below


def _matches(row: Row, wanted: Mapping[str, object]) -> bool:
    return all(row[name] == value for name, value in wanted.items())
