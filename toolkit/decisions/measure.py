"""Measuring endpoints: the episodes, counts and ranges of the rows that a rule reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import fsum
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from toolkit.errors import DamagedError, RuleError
from toolkit.estimators.curves import auc, steps_to_threshold
from toolkit.registers.columns import BOUNDS, EXCLUDED, read_attributes
from toolkit.registers.episode_counts import task_set_sha256
from toolkit.registers.schema import TABLES
from toolkit.rules.endpoints import COUNTED_BY_TASK, Endpoint, is_counted_by_task
from toolkit.rules.plan import Plan, described, place_of
from toolkit.rules.terms import PLACE
from toolkit.rules.values import Missing, Scalar, Series, exact, whole
from toolkit.structs import Document, about

if TYPE_CHECKING:
    from toolkit.registers.episode_counts import Counts, TaskCount
    from toolkit.registers.manifest import Origin


Row = Mapping[str, Any]


class Tables(Protocol):
    """What is measured: a study's tables, as they are stored."""

    @property
    def name(self) -> str:
        """The study's name."""

    @property
    def is_summary(self) -> bool:
        """Whether the study holds published figures only."""

    def has(self, table: str) -> bool:
        """Whether the study has a table."""

    def rows(self, table: str) -> Sequence[Any]:
        """The rows of a table."""

    def success_counts(
        self, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
    ) -> Counts:
        """Successes by run and step, then by task, counted from episode rows."""


class Registers(Tables, Protocol):
    """What is decided on: tables that say what was hashed of them, and hold against their rows."""

    @property
    def origin(self) -> Origin | None:
        """Where on the Hub the study came from; None for a local one."""

    def hashed_rows(self, table: str) -> str | None:
        """The logical row hash of a table, if it was computed here."""

    def hashed(self, table: str) -> dict[str, str]:
        """The SHA-256 of each file of a table that was hashed here, by path."""

    def derive(self, table: str, names: Collection[str]) -> None:
        """Check that rows of a table are what the rows give that they follow from."""


class IndexedRows(list[Row]):
    """A table's rows, with an index for every set of columns that was asked by. Nobody changes them."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__(rows)
        self._indices: dict[tuple[str, ...], dict[tuple[object, ...], list[Row]]] = {}

    def having(self, wanted: Mapping[str, object]) -> list[Row]:
        """Return the rows with these values, in order."""
        names = tuple(wanted)
        if names not in self._indices:
            index: dict[tuple[object, ...], list[Row]] = {}
            for row in self:
                index.setdefault(tuple(row[name] for name in names), []).append(row)
            self._indices[names] = index
        return self._indices[names].get(tuple(wanted.values()), [])


class Indexed:
    """Registers whose rows are read once and indexed: a registration asks one table hundreds of times.

    Args:
        registers: the study.
    """

    def __init__(self, registers: Registers) -> None:
        self.name, self.is_summary, self.origin = registers.name, registers.is_summary, registers.origin
        self.has, self.derive = registers.has, registers.derive
        self.hashed, self.hashed_rows = registers.hashed, registers.hashed_rows
        self.success_counts = registers.success_counts
        self._read = registers.rows
        self._rows: dict[str, IndexedRows] = {}

    def rows(self, table: str) -> IndexedRows:
        """The rows of a table."""
        if table not in self._rows:
            self._rows[table] = IndexedRows(self._read(table))
        return self._rows[table]


def rows_with(table: Sequence[Row], wanted: Mapping[str, object]) -> Sequence[Row]:
    """Return the rows of a table that have the wanted values."""
    if isinstance(table, IndexedRows):
        return table.having(wanted)
    return [row for row in table if all(row[name] == value for name, value in wanted.items())]


EVALUATIONS = "evaluations"
MISSING = "missing"


def lack_outcomes(registers: Tables) -> bool:
    """Whether any episode of a study has no outcome of its own."""
    return registers.has(EVALUATIONS) and any(row.get(MISSING) for row in registers.rows(EVALUATIONS))


class Succeeding:
    """Registers in which what is missing of some arms are successes, or has the highest score.

    Args:
        registers: with what is missing as failures, or with the lowest score.
        scores: the registered range of scores, where there are any.
        arms: whose they are.
    """

    def __init__(
        self, registers: Registers, scores: tuple[Fraction, Fraction] | None, arms: Collection[str]
    ) -> None:
        self.name, self.is_summary, self.origin = registers.name, registers.is_summary, registers.origin
        self.has, self.derive = registers.has, registers.derive
        self.hashed, self.hashed_rows = registers.hashed, registers.hashed_rows
        self._registers = registers
        self._arms = {row["run_id"]: row["arm"] in arms for row in registers.rows("runs")}
        low, high = scores or (Fraction(0), Fraction(1))
        self._lifts = {"successes": 1, "true_success": 1, "score": float(high - low)}

    def rows(self, table: str) -> IndexedRows:
        """The rows of a table."""
        rows = self._registers.rows(table)
        return IndexedRows([self._lifted(row) for row in rows] if table == EVALUATIONS else rows)

    def success_counts(
        self, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
    ) -> Counts:
        """Successes by run and step, then by task."""
        counts = self._registers.success_counts(column, runs, where, steps)
        lift = self._lifts.get(column)
        if not lift:
            return counts
        lacking = self._registers.success_counts(MISSING, runs, where, steps)
        return {
            at: {
                task: counted._replace(successes=counted.successes + lift * lacking[at][task].successes)
                for task, counted in tasks.items()
            }
            if self._arms[at[0]]
            else tasks
            for at, tasks in counts.items()
        }

    def _lifted(self, row: Row) -> Row:
        lacking = row.get(MISSING) or 0 if self._arms[row["run_id"]] else 0
        lifted = {name: row[name] + by * lacking for name, by in self._lifts.items() if name in row}
        return {**row, **lifted}


EPISODES, TASK_POOLS, ATTRIBUTES = "episodes", "task_pools", "attributes"
LACKING = (MISSING, EXCLUDED)
"""Columns of `evaluations` that count episodes without an outcome."""
_KEPT = ("run_id", "condition", "arm", "seed", *PLACE, "step")


def episode_counts(endpoint: Endpoint, runs: Iterable[str], registers: Tables, plan: Plan) -> Counts:
    """Count the episodes of an endpoint by task, without the tasks that are left out."""
    tasks = tasks_of(endpoint, registers) if endpoint.attributes else None
    if isinstance(tasks, Missing):
        return {}
    counts = _counts(endpoint, _column(endpoint), (list(runs), endpoint.steps), registers, tasks)
    return _without(counts, left_out(endpoint, registers, plan))


def rows_of(endpoint: Endpoint, registers: Tables, plan: Plan | None = None) -> Any:
    """Return the rows that an endpoint is measured on: of its tasks, with a plan without those left out."""
    if not registers.has(endpoint.register):
        return _missing(f"the study has no register {endpoint.register!r}")
    table = registers.rows(endpoint.register)
    leaves_out = plan is not None and excludes(endpoint) and lack_outcomes(registers)
    if not endpoint.attributes and not leaves_out:
        return table
    if not registers.has(EPISODES):
        return _missing(f"{endpoint.id} is measured on some tasks, and the study has no episode rows")
    tasks = tasks_of(endpoint, registers) if endpoint.attributes else None
    if isinstance(tasks, Missing):
        return tasks
    rows = [row for row in rows_with(table, endpoint.where) if _is_in(row, endpoint)]
    at = sorted({row["run_id"] for row in rows}), sorted({row["step"] for row in rows})
    lacking = [name for name in LACKING if any(row.get(name) for row in rows)]
    counts = _counts(endpoint, _column(endpoint), at, registers, tasks)
    lost = {name: _counts(endpoint, name, at, registers, tasks) for name in lacking}
    if leaves_out and plan is not None:
        out = left_out(endpoint, registers, plan)
        others = {at: of for at, of in lost.get(MISSING, {}).items() if at[0] not in out}
        out = {**out, **_lacking(others, {run: run for run, _ in others})}
        kept = _without(counts, out)
        if any(counts[at] and not tasks for at, tasks in kept.items()):
            return _missing(f"{endpoint.id} has a seed of which no task has an outcome in every run")
        lost = {name: _without(each, out) for name, each in lost.items()}
        lost[EXCLUDED] = {at: _without_these(tasks, kept.get(at, {})) for at, tasks in counts.items()}
        counts = kept
    made = (_row(endpoint, row, counts, lost) for row in rows)
    # Tasks may differ from seed to seed where some are left out, and are the same within one.
    return IndexedRows([{**row, "task_set": None} if leaves_out else row for row in made if row])


def excludes(endpoint: Endpoint) -> bool:
    """Whether an endpoint goes without tasks that lack an outcome."""
    return endpoint.counts_as == EXCLUDED and is_counted_by_task(endpoint)


def left_out(endpoint: Endpoint, registers: Tables, plan: Plan) -> Mapping[str, frozenset[int]]:
    """Return the tasks that each run of a comparison goes without.

    They are those of which one of its runs with this seed lacks an outcome at one of the steps.
    """
    if not (excludes(endpoint) and lack_outcomes(registers) and registers.has(EPISODES)):
        return {}
    runs = plan.deciding_runs(endpoint, registers.rows("runs"))
    there = {run: seed for (_, seed), run in runs.items() if isinstance(run, str)}
    return _lacking(_counts(endpoint, MISSING, (list(there), endpoint.steps), registers, None), there)


def _lacking(missing: Counts, together: Mapping[str, object]) -> dict[str, frozenset[int]]:
    """Return the tasks of each run that lack an outcome in it, or in one that it goes together with."""
    out: dict[object, set[int]] = {}
    for (run, _), tasks in missing.items():
        out.setdefault(together[run], set()).update(task for task, of in tasks.items() if of.successes)
    return {run: frozenset(out.get(key, ())) for run, key in together.items()}


def _without(counts: Counts, out: Mapping[str, Collection[int]]) -> Counts:
    return {at: _without_these(tasks, out.get(at[0], ())) for at, tasks in counts.items()}


def _without_these(tasks: Mapping[int, TaskCount], out: Collection[int]) -> dict[int, TaskCount]:
    return {task: of for task, of in tasks.items() if task not in out}


def are_read(study: Tables, endpoint: Endpoint, plan: Plan) -> bool:
    """Whether a study has what an endpoint is measured on."""
    if not endpoint.attributes:
        return study.has(endpoint.register)
    return not isinstance(rows_of(endpoint, study, plan), Missing)


def tasks_of(endpoint: Endpoint, registers: Tables) -> frozenset[int] | Missing:
    """The positions of the tasks that an endpoint is measured on, if they are as many as registered."""
    found = tasks_named(endpoint, registers)
    if isinstance(found, Missing) or len(found) == endpoint.tasks:
        return found
    named, pool = ", ".join(in_words(endpoint)), endpoint.where["pool"]
    return _missing(f"expected {endpoint.tasks} tasks with {named} in pool {pool}, found {len(found)}")


def tasks_named(endpoint: Endpoint, registers: Tables) -> frozenset[int] | Missing:
    """Return the positions of the tasks with an endpoint's attributes, as their pool says them."""
    pool, wanted = endpoint.where["pool"], endpoint.attributes
    rows = rows_with(registers.rows(TASK_POOLS), {"pool": pool}) if registers.has(TASK_POOLS) else ()
    if not all(row.get(ATTRIBUTES) for row in rows) or not rows:
        return _missing(f"{TASK_POOLS} says no attributes of tasks of {pool}")
    found = []
    for row in rows:
        where = f"{TASK_POOLS}, task {row['index']} of {pool}"
        said = read_attributes(row[ATTRIBUTES], where)
        absent = sorted(wanted.keys() - said.keys())
        if absent:
            raise DamagedError("a task lacks an attribute", expected=", ".join(absent), where=where)
        if wanted.items() <= said.items():
            found.append(row["index"])
    return frozenset(found)


def in_words(endpoint: Endpoint) -> tuple[str, ...]:
    """Return what the tasks are that an endpoint is measured on; nothing where it is on all."""
    return tuple(f"{name}={value}" for name, value in sorted(endpoint.attributes.items()))


def _column(endpoint: Endpoint) -> str:
    return COUNTED_BY_TASK[endpoint.outcome.columns[0]]


def _is_in(row: Row, endpoint: Endpoint) -> bool:
    return row["condition"] == endpoint.condition and row["arm"] in endpoint.arms


def _counts(
    endpoint: Endpoint,
    column: str,
    at: tuple[Sequence[str], Sequence[int]],
    registers: Tables,
    tasks: frozenset[int] | None,
) -> Counts:
    """Count a column of the episodes of some runs at some steps, on some tasks or, with None, on all."""
    where = {name: endpoint.where[name] for name in PLACE if name in endpoint.where}
    counts = registers.success_counts(column, at[0], where, at[1])
    if tasks is None:
        return counts
    return {
        key: {task: of for task, of in counted.items() if task in tasks} for key, counted in counts.items()
    }


def _row(endpoint: Endpoint, row: Row, counts: Counts, lacking: Mapping[str, Counts]) -> Row | None:
    """Return an evaluation as it would be with these episodes alone; None where there are none."""
    at = row["run_id"], row["step"]
    tasks = counts.get(at)
    if not tasks:
        return None
    values = [of.successes for of in tasks.values()]
    whole = all(isinstance(value, int) for value in values)
    return {
        **{name: row[name] for name in _KEPT},
        **{name: _lost(name, each.get(at, {})) for name, each in lacking.items()},
        endpoint.outcome.columns[0]: sum(values) if whole else fsum(values),
        "episodes": sum(of.episodes for of in tasks.values()),
        "tasks": len(tasks),
        "episodes_per_task": max(of.episodes for of in tasks.values()),
        "task_set": task_set_sha256(sorted(tasks)),
    }


def _lost(name: str, tasks: Mapping[int, TaskCount]) -> int:
    return int(sum(of.episodes if name == EXCLUDED else of.successes for of in tasks.values()))


def _missing(reason: str) -> Missing:
    return Missing(not_run=False, reasons=(reason,))


Runs = Mapping[tuple[str, int], str | Missing]


@dataclass(frozen=True)
class CurvePoint:
    """One point."""

    arm: str  # the arm
    series: str  # `seed 0`, …; `mean` over the deciding runs; `replication` for runs shown beside them
    step: int  # training step
    success: Fraction  # true success, a fraction in [0, 1]
    # successes, episodes: the counts that it is the quotient of; None where it is not one of counts
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
    table = rows_of(endpoint, registers, plan)
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
    table = rows_of(endpoint, registers, plan)
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
    counts = map(int, cells) if endpoint.outcome.is_rate else ()
    return [CurvePoint(*place, value, *counts)]


def success_at(endpoint: Endpoint, table: Sequence[Row], run: str, step: int) -> Scalar:
    """Return one point of a run's learning curve on the endpoint's evaluation set."""
    return _number(endpoint, table, {"run_id": run, "step": step})


def counted_at(endpoint: Endpoint, table: Sequence[Row], run: str, step: int) -> Row | Missing:
    """Return the row behind one point of a run's learning curve."""
    return _endpoint_row(endpoint, table, {"run_id": run, "step": step})


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
        r if isinstance(r, Missing) else _endpoint_row(endpoint, table, {"run_id": r, **at})
        for r in runs.values()
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
    row = _endpoint_row(endpoint, table, place)
    return row if isinstance(row, Missing) else _cells(endpoint, row)


def _outcome(endpoint: Endpoint, cells: tuple[Fraction, ...]) -> Scalar:
    first, *second = cells
    return _quotient(first, second[0], endpoint) if second else first


def _endpoint_row(endpoint: Endpoint, table: Sequence[Row], place: Mapping[str, object]) -> Row | Missing:
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
    short += _not_counted(endpoint, matching[0], where)
    return Missing(not_run=False, reasons=tuple(short)) if short else matching[0]


def _with_excluded(endpoint: Endpoint, row: Row) -> Row:
    """Return an evaluation as large as it was with the episodes that were left out as registered."""
    if not row.get(EXCLUDED):
        return row
    size = _size(endpoint, row)
    tasks = {"tasks": size // endpoint.schedules} if endpoint.schedules and "tasks" in row else {}
    return {**row, "episodes": size, **tasks}


def _size(endpoint: Endpoint, row: Row) -> int:
    """Return how many episodes an evaluation had; a set declared for a comparison may have fewer."""
    played: int = row["episodes"] + (row.get(EXCLUDED) or 0)
    registered = endpoint.tasks * endpoint.schedules
    return registered if excludes(endpoint) and row["episodes"] <= registered <= played else played


MEASURED = ("score", "calls", "tokens", "cost")
"""What an episode without an outcome has none of: nothing counts for it."""


def made_up(endpoint: Endpoint) -> tuple[str, str]:
    """Return what an endpoint would make up where there is none, and what it can say instead; or nothing."""
    measured = next((name for name in endpoint.outcome.columns if name in MEASURED), "")
    can = (EXCLUDED, BOUNDS) if measured == "score" else (EXCLUDED,)
    if not measured or endpoint.counts_as in can:
        return "", ""
    return measured, " or ".join(f'"{word}"' for word in can)


def _not_counted(endpoint: Endpoint, row: Row, where: str) -> list[str]:
    """Return why an evaluation with episodes without an outcome has no value, if it has none."""
    lacking = row.get(MISSING) or 0
    if not lacking and not row.get(EXCLUDED):
        return []
    measured, _ = made_up(endpoint)
    if lacking and measured:
        said = f"{lacking} of {row['episodes']} episodes have no {measured} at {where}, which is not zero"
        return [f"{said}: `missing` of {endpoint.id} says what becomes of them"]
    size = _size(endpoint, row)
    lacking += size - row["episodes"]
    if Fraction(lacking, size) <= endpoint.most_missing:
        return []
    registered = f"at most {float(endpoint.most_missing):.1%} may be"
    return [f"{lacking} of {size} episodes are missing or left out at {where}, and {registered}"]


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


class Coverage(Document, frozen=True):
    """How many of an arm's registered episodes an estimate rests on."""

    arm: Annotated[str, about("Of the endpoint.")]
    registered: Annotated[int, about("Episodes that are registered.")]
    present: Annotated[int, about("Those with an outcome.")]
    missing: Annotated[int, about("Those without one, or without a row.")]
    excluded: Annotated[int, about("Those that are left out of the comparison, with those that are missing.")]
    imputed: Annotated[int, about("Those that are missing and count as registered.")]

    @property
    def is_whole(self) -> bool:
        """Whether all that is registered is there, and counted."""
        return not (self.missing or self.excluded)

    @property
    def in_words(self) -> str:
        """The counts, in words."""
        counts = (
            ("missing", self.missing),
            ("more left out", self.excluded - self.missing),
            ("of these counted as registered", self.imputed),
        )
        said = [f"{count:,} {what}" for what, count in counts if count > 0]
        return f"{self.arm} {self.present:,} of {self.registered:,} present{''.join(f', {s}' for s in said)}"


def coverage_of(endpoint: Endpoint, registers: Tables, plan: Plan) -> tuple[Coverage, ...]:
    """Count the episodes of each arm of an endpoint; nothing where no size is registered."""
    size = endpoint.tasks * endpoint.schedules
    tables = [rows_of(endpoint, registers), rows_of(endpoint, registers, plan)]
    if not size or not endpoint.arms or isinstance(tables[0], Missing):
        return ()
    deciding = plan.deciding_runs(endpoint, registers.rows("runs"))
    made = []
    for arm in endpoint.arms:
        runs = [run for (of, _), run in deciding.items() if of == arm]
        at = [{**endpoint.where, "run_id": run, "step": step} for run in runs for step in endpoint.steps]
        there, left = (
            [] if isinstance(table, Missing) else [row for place in at for row in rows_with(table, place)]
            for table in tables
        )
        missing = sum(row.get(MISSING) or 0 for row in there)
        present, registered = sum(row["episodes"] for row in there) - missing, size * len(at)
        counts = not excludes(endpoint) and not made_up(endpoint)[0]
        out = registered - sum(row["episodes"] for row in left) if excludes(endpoint) else 0
        out += sum(row.get(EXCLUDED) or 0 for row in there)
        lacking = max(registered - present, 0)
        made.append(Coverage(arm, registered, present, lacking, max(out, 0), missing if counts else 0))
    return tuple(made)


# More seeds than this are counted together.
MOST_SEEDS = 2


class ArmCounts(Document, frozen=True):
    """What one arm had, added up over the steps that are read."""

    arm: Annotated[str, about("Of the endpoint.")]
    seed: Annotated[int | None, about("The seed; null for all seeds together.")]
    count: Annotated[int | float, about("How many, such as successes; a sum where scores were measured.")]
    of: Annotated[int | float, about("Out of how many, such as episodes.")]
    counted: Annotated[str, about("The column that `count` adds up.")]
    among: Annotated[str, about("The column that `of` adds up.")]
    steps: Annotated[
        int, about("Evaluations that were added up; an area under the curve weighs them otherwise.")
    ] = 1


def arm_counts(
    endpoint: Endpoint, registers: Tables, plan: Plan, failing: Collection[str]
) -> tuple[ArmCounts, ...]:
    """Add up what the arms of an endpoint had at the steps that it reads."""
    table = rows_of(endpoint, registers, plan)
    if not endpoint.outcome.is_rate or not endpoint.arms or isinstance(table, Missing):
        return ()
    named = tuple(seed for seed in endpoint.seeds if str(seed) in failing) if endpoint.by == "seed" else ()
    alone = 0 < len(named) <= MOST_SEEDS
    runs = plan.deciding_runs(endpoint, registers.rows("runs"))
    made = []
    for seeds in [(seed,) for seed in named] if alone else [endpoint.seeds]:
        for arm in endpoint.arms:
            rows = [
                row
                for run in (runs[arm, seed] for seed in seeds)
                for step in endpoint.steps
                for row in [run if isinstance(run, Missing) else counted_at(endpoint, table, run, step)]
            ]
            sums = [_sum(rows, name) for name in endpoint.outcome.columns]
            if None in sums:
                return ()
            above, below = (number for number in sums if number is not None)
            seed = seeds[0] if alone else None
            counted, among = endpoint.outcome.columns
            made.append(ArmCounts(arm, seed, above, below, counted, among, len(endpoint.steps)))
    return tuple(made)


def _sum(rows: Sequence[Row | Missing], column: str) -> int | float | None:
    """Return the sum of a column; None where a row or its number is missing, or there is no row."""
    numbers = [None if isinstance(row, Missing) else row.get(column) for row in rows]
    if not numbers or None in numbers:
        return None
    total = sum((exact(number) for number in numbers if number is not None), Fraction(0))
    return int(total) if total.denominator == 1 else float(total)
