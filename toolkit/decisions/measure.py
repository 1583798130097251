"""From the rows of a register to an endpoint's value, exactly; its learning curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from toolkit.decisions.endpoints import Endpoint, Rate
from toolkit.decisions.lookup import Row, Tables, rows_with
from toolkit.decisions.plan import Plan, described, place_of
from toolkit.decisions.subgroup import in_words, rows_of
from toolkit.decisions.values import Missing, Scalar, Series, exact, whole
from toolkit.errors import DamagedError, RuleError
from toolkit.estimators import auc, steps_to_threshold
from toolkit.registers.schema import TABLES

Runs = Mapping[tuple[str, int], str | Missing]


@dataclass(frozen=True)
class CurvePoint:
    """One point.

    Args:
        arm: the arm.
        series: `seed 0`, …; `mean` over the deciding runs; `replication` for runs shown beside them.
        step: training step.
        success: true success, a fraction in [0, 1].
        successes, episodes: the counts that it is the quotient of; None where it is not one of counts.
    """

    arm: str
    series: str
    step: int
    success: Fraction
    successes: int | None = None
    episodes: int | None = None


def mean_point(held: Sequence[CurvePoint]) -> CurvePoint:
    """Return the mean of one step's points; it has the counts of all where they are equally many."""
    sizes = {point.episodes for point in held}
    counts: tuple[int | None, int | None] = None, None
    if len(sizes) == 1 and None not in sizes:
        counts = sum(p.successes or 0 for p in held), sum(p.episodes or 0 for p in held)
    mean = sum((point.success for point in held), Fraction(0)) / len(held)
    return CurvePoint(held[0].arm, "mean", held[0].step, mean, *counts)


def measure(endpoint: Endpoint, registers: Tables, plan: Plan) -> Scalar | Series[Fraction]:
    """Return an endpoint's value."""
    value = _measure(endpoint, registers, plan)
    for number in value.values if isinstance(value, Series) else (value,):
        if not isinstance(number, Missing) and not endpoint.low <= number <= endpoint.high:
            raise DamagedError(
                f"{endpoint.id} has a value outside its declared range",
                expected=f"{float(endpoint.low)} to {float(endpoint.high)}",
                found=float(number),
                where=f"study {registers.name}, register {endpoint.register}",
            )
    return value


def _measure(endpoint: Endpoint, registers: Tables, plan: Plan) -> Scalar | Series[Fraction]:
    table = rows_of(endpoint, registers)
    if isinstance(table, Missing):
        unmeasured = tuple((member, table) for member in members(endpoint))
        return Series(endpoint.by, unmeasured) if endpoint.is_series else table
    if endpoint.by == "row":
        return _number(endpoint, table, _single_step(endpoint))
    if endpoint.by == "checkpoint":
        numbers = (_number(endpoint, table, {"trajectory": t, "step": s}) for t, s in endpoint.checkpoints)
        return Series("checkpoint", tuple(zip(members(endpoint), numbers, strict=True)))
    runs = plan.deciding_runs(endpoint, registers.rows("runs"))
    if apart := _other_tasks(endpoint, table, runs):
        runs = {key: run if isinstance(run, Missing) else apart for key, run in runs.items()}
    if endpoint.by == "pooled":
        return _pooled(endpoint, table, runs)
    levels = {key: _level(endpoint, table, run) for key, run in runs.items()}
    if endpoint.by == "seed":
        return Series(
            "seed", tuple((str(seed), _contrast(endpoint, levels, seed)) for seed in endpoint.seeds)
        )
    run_ids = (
        run if isinstance(run, str) else member
        for run, member in zip(runs.values(), members(endpoint), strict=True)
    )
    return Series("run", tuple(zip(run_ids, levels.values(), strict=True)))


def curve_points(endpoint: Endpoint, registers: Tables, plan: Plan) -> tuple[CurvePoint, ...]:
    """Return the learning curves of an endpoint's runs on its evaluation set, at every step evaluated."""
    table = rows_of(endpoint, registers)
    if isinstance(table, Missing):
        return ()
    runs = registers.rows("runs")
    steps = sorted(
        {r["step"] for r in table if all(r[name] == value for name, value in endpoint.where.items())}
    )
    points: list[CurvePoint] = []
    deciding = plan.deciding_runs(endpoint, runs)
    for arm in endpoint.arms:
        for step in steps:
            seeds = {s: run for (a, s), run in deciding.items() if a == arm and isinstance(run, str)}
            held = [
                point
                for seed, run in seeds.items()
                for point in _points_at(endpoint, table, run, (arm, f"seed {seed}", step))
            ]
            points += held
            if held and len(held) == len(endpoint.seeds):
                points.append(mean_point(held))
            for run in runs:
                condition, scaling, ran, seed = place_of(run)
                shown = (condition, scaling, ran) == (endpoint.condition, endpoint.scale_rewards, arm)
                if shown and run["role"] == "replication" and seed in endpoint.seeds:
                    points += _points_at(endpoint, table, run["run_id"], (arm, "replication", step))
    return tuple(sorted(points, key=lambda p: (p.arm, p.series, p.step)))


def _points_at(
    endpoint: Endpoint, table: Sequence[Row], run: str, place: tuple[str, str, int]
) -> list[CurvePoint]:
    """Return a run's point at a step as a curve's: its arm, series and step; none where there is no value."""
    cells = _counted(endpoint, table, {"run_id": run, "step": place[2]})
    value = cells if isinstance(cells, Missing) else _outcome(endpoint, cells)
    if isinstance(cells, Missing) or isinstance(value, Missing):
        return []
    counts = map(int, cells) if isinstance(endpoint.outcome, Rate) else ()
    return [CurvePoint(*place, value, *counts)]


def success_at(endpoint: Endpoint, table: Sequence[Row], run: str, step: int) -> Scalar:
    """Return one point of a run's learning curve on the endpoint's evaluation set."""
    return _number(endpoint, table, {"run_id": run, "step": step})


def counted_at(endpoint: Endpoint, table: Sequence[Row], run: str, step: int) -> Row | Missing:
    """Return the row behind one point of a run's learning curve."""
    return _row(endpoint, table, {"run_id": run, "step": step})


def members(endpoint: Endpoint) -> list[str]:
    """Return the members of an endpoint's series, in order; a run goes by its place in the matrix."""
    match endpoint.by:
        case "seed":
            return [str(seed) for seed in endpoint.seeds]
        case "run":
            return [described(endpoint, arm, seed) for arm in endpoint.arms for seed in endpoint.seeds]
        case _:
            return [f"{trajectory}@{step}" for trajectory, step in endpoint.checkpoints]


def _contrast(endpoint: Endpoint, levels: Mapping[tuple[str, int], Scalar], seed: int) -> Scalar:
    values = whole(levels[arm, seed] for arm in endpoint.arms)
    if isinstance(values, Missing):
        return values
    first, *second = values
    return first - second[0] if second else first


def _level(endpoint: Endpoint, table: Sequence[Row], run: str | Missing) -> Scalar:
    """Return one run's number: a single step's, or the summary over the registered steps."""
    if isinstance(run, Missing):
        return run
    if not endpoint.over_steps:
        return _number(endpoint, table, {"run_id": run, **_single_step(endpoint)})
    points = tuple((str(step), success_at(endpoint, table, run, step)) for step in endpoint.steps)
    by_step = Series("step", points).present()
    return by_step if isinstance(by_step, Missing) else _over_steps(endpoint, run, by_step)


def _over_steps(endpoint: Endpoint, run: str, by_step: tuple[Fraction, ...]) -> Scalar:
    if endpoint.over_steps == "auc":
        return auc(by_step, endpoint.steps)
    if endpoint.over_steps == "auc_gain":
        return auc(by_step, endpoint.steps) - by_step[0]
    if endpoint.threshold is None:
        return sum(by_step, Fraction(0)) / len(by_step)
    reached = steps_to_threshold(by_step, endpoint.steps, endpoint.threshold)
    if reached is None:
        reason = f"{run} never reached {float(endpoint.threshold)} (censored at step {endpoint.steps[-1]})"
        return Missing(not_run=False, reasons=(reason,))
    return reached


def _pooled(endpoint: Endpoint, table: Sequence[Row], runs: Runs) -> Scalar:
    """Return the rate of the counts of all seeds together."""
    at = _single_step(endpoint)
    rows = [
        r if isinstance(r, Missing) else _row(endpoint, table, {"run_id": r, **at}) for r in runs.values()
    ]
    pairs = whole(row if isinstance(row, Missing) else _cells(endpoint, row) for row in rows)
    if isinstance(pairs, Missing):
        return pairs
    counts, totals = (sum(column, Fraction(0)) for column in zip(*pairs, strict=True))
    return _quotient(counts, totals, endpoint)


def _number(endpoint: Endpoint, table: Sequence[Row], place: Mapping[str, object]) -> Scalar:
    """Return the endpoint's outcome on the one row at a place."""
    cells = _counted(endpoint, table, place)
    return cells if isinstance(cells, Missing) else _outcome(endpoint, cells)


def _counted(
    endpoint: Endpoint, table: Sequence[Row], place: Mapping[str, object]
) -> tuple[Fraction, ...] | Missing:
    """Return what the endpoint reads of the one row at a place."""
    row = _row(endpoint, table, place)
    return row if isinstance(row, Missing) else _cells(endpoint, row)


def _outcome(endpoint: Endpoint, cells: tuple[Fraction, ...]) -> Scalar:
    first, *second = cells
    return _quotient(first, second[0], endpoint) if second else first


def _row(endpoint: Endpoint, table: Sequence[Row], place: Mapping[str, object]) -> Row | Missing:
    wanted = {**endpoint.where, **place}
    matching = rows_with(table, wanted)
    where = ", ".join([*(f"{name}={value}" for name, value in wanted.items()), *in_words(endpoint)])
    if not matching:
        return Missing(not_run=False, reasons=(f"{endpoint.register} has no row with {where}",))
    if len(matching) > 1:
        raise _several(endpoint, matching, where)
    found = _with_excluded(endpoint, matching[0])
    short = [
        f"expected {expected} {column}, found {found[column]} at {where}"
        for column, expected in {**endpoint.expect, **_whole_set(endpoint, matching[0])}.items()
        if found[column] != expected
    ]
    short += _too_many_missing(endpoint, matching[0], where)
    return Missing(not_run=False, reasons=tuple(short)) if short else matching[0]


def _with_excluded(endpoint: Endpoint, row: Row) -> Row:
    """Return an evaluation as large as it was with the episodes that were left out as registered."""
    if not row.get("excluded"):
        return row
    whole = {"episodes": row["episodes"] + row["excluded"]}
    if endpoint.schedules and "tasks" in row:
        whole["tasks"] = row["tasks"] + row["excluded"] // endpoint.schedules
    return {**row, **whole}


def _too_many_missing(endpoint: Endpoint, row: Row, where: str) -> list[str]:
    """Return that more of an evaluation's episodes have no outcome than is registered."""
    lacking = (row.get("missing") or 0) + (row.get("excluded") or 0)
    if not lacking:
        return []
    played = row["episodes"] + (row.get("excluded") or 0)
    if Fraction(lacking, played) <= endpoint.most_missing:
        return []
    registered = f"at most {float(endpoint.most_missing):.1%} may be"
    return [f"{lacking} of {played} episodes are missing or left out at {where}, and {registered}"]


def _whole_set(endpoint: Endpoint, row: Row) -> dict[str, int]:
    """Return what a complete evaluation says of its tasks, where its register says anything of them.

    As many episodes as tasks × schedules could be of other tasks, some of them played twice.
    """
    registered = {"tasks": endpoint.tasks, "episodes_per_task": endpoint.schedules}
    return {name: number for name, number in registered.items() if number and name in row}


def _other_tasks(endpoint: Endpoint, table: Sequence[Row], runs: Runs) -> Missing | None:
    """Return that the runs of an endpoint met different tasks, where their register says which they met."""
    met: dict[str, str] = {}
    for run in (run for run in runs.values() if isinstance(run, str)):
        for row in rows_with(table, {**endpoint.where, "run_id": run}):
            if row.get("task_set") and (not endpoint.steps or row["step"] in endpoint.steps):
                met.setdefault(row["task_set"], f"{run} at step {row['step']}")
    if len(met) < 2:  # noqa: PLR2004 - two sets are different ones
        return None
    first, other, *_ = met.values()
    return Missing(not_run=False, reasons=(f"the tasks of {other} are not those of {first}",))


def _several(endpoint: Endpoint, rows: Sequence[Row], place: str) -> DamagedError:
    """Return the error of several rows: the endpoint leaves a column of the key open, or they are damaged."""
    problem = f"{endpoint.register} has {len(rows)} rows where the endpoint needs one"
    values = {name: {str(row.get(name)): None for row in rows} for name in TABLES[endpoint.register].key}
    left_open = {name: list(distinct) for name, distinct in values.items() if len(distinct) > 1}
    where = f"endpoint {endpoint.id}"
    if not left_open:
        return DamagedError(problem, expected="one row", found=place, where=where)
    names = " and ".join(left_open)
    differing = "; ".join(f"{name}={' or '.join(distinct)}" for name, distinct in left_open.items())
    return RuleError(
        f"{problem}: it does not say which {names}",
        expected=f"one row: `where` fixes {names}, too",
        found=f"{place}, with {differing}",
        where=where,
        remedy=f"declare the endpoint with {names} in its `where`; a frozen one anew, in an amendment",
    )


def _single_step(endpoint: Endpoint) -> dict[str, int]:
    return {"step": endpoint.steps[0]} if endpoint.steps else {}


def _cells(endpoint: Endpoint, row: Row) -> tuple[Fraction, ...] | Missing:
    return whole(_cell(endpoint, row, column) for column in endpoint.outcome.columns)


def _cell(endpoint: Endpoint, row: Row, column: str) -> Scalar:
    value = row.get(column)  # a study may have left the column out
    if value is None:
        key = row.get("run_id") or ", ".join(f"{k}={v}" for k, v in endpoint.where.items())
        return Missing(not_run=False, reasons=(f"{endpoint.register}.{column} of {key} was not published",))
    if not isinstance(value, int | float | Decimal):
        raise DamagedError(
            f"{endpoint.register}.{column} is no number", found=repr(value), where=f"endpoint {endpoint.id}"
        )
    return exact(value)


def _quotient(above: Fraction, below: Fraction, endpoint: Endpoint) -> Scalar:
    if below == 0:
        return Missing(not_run=False, reasons=(f"{endpoint.id} is a quotient over zero",))
    return above / below
