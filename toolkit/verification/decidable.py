"""Whether rules can be frozen: each can pass and can miss, and the engine could decide all that is declared.

The engine is run on studies that the matrix would fill. Outcomes are simulated; which rows there are is not.
Runs of this toolkit leave what their specifications say: evaluations on the sets of their battery, groups of
every step, luck shares at the steps that are diagnosed, checkpoints that are probed. Runs that are played
elsewhere leave whatever an endpoint of theirs asks for.

Simulated outcomes may happen to have no value, such as a quotient over zero: what is refused has none in any
of several studies. Which tasks have an attribute is not registered, but how many have it is: refused, too,
are numbers that no tasks can have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from toolkit.decisions import evaluation
from toolkit.decisions.engine import Engine
from toolkit.decisions.evaluation import solver
from toolkit.decisions.measure import in_words, made_up
from toolkit.errors import DamagedError, RuleError, UsageError
from toolkit.prereg.record import UNFILLED, Amendment, Deviation
from toolkit.prereg.registration import Registration
from toolkit.registers.columns import attributes_text
from toolkit.registers.episode_counts import Counts, TaskCount, task_set_sha256
from toolkit.registers.row_tables import BASE
from toolkit.registers.schema import TABLES
from toolkit.rooms import ExpectedRun, is_played_here, laboratory
from toolkit.rules import rulebook
from toolkit.rules.endpoints import Endpoint
from toolkit.rules.plan import Cell, run_name
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.values import Missing, Series
from toolkit.structs import replace
from toolkit.verification.summaries import TARGETS

LEARNING = ((0.3, 0.6), (0.1, 1.0), (0.7, 0.2))
"""Success before training and at the end of it, study by study: all succeed at the end of one."""
RESAMPLES = 200
"""Whether an interval has ends does not depend on how exact they are."""
MOST_SAID = 8


def check_decidable(book: RuleBook, only: Collection[str] | None = None) -> None:
    """Check that all that is declared has a value on rows that the registered matrix gives."""
    few = {
        name: replace(spec, resamples=min(spec.resamples, RESAMPLES)) for name, spec in book.intervals.items()
    }
    cheap = replace(book, intervals=few, endpoints={n: _apart(e) for n, e in book.endpoints.items()})
    read = None if only is None else _read(book, only)
    lacking = [_undecided(cheap, SimulatedStudy(cheap, *success), read) for success in LEARNING]
    never = {name: why for name, why in lacking[0].items() if all(name in other for other in lacking)}
    never |= _of_no_tasks(book, read) | _of_nothing(book, read)
    if never:
        said = [f"{name}: {why}" for name, why in never.items()]
        more = [f"and {len(said) - MOST_SAID} more"] if len(said) > MOST_SAID else []
        raise RuleError(
            "what is registered could never be decided: the rows that its matrix gives do not have it",
            expected="all that is declared has a value on made-up rows of the registered runs",
            found="; ".join([*said[:MOST_SAID], *more]),
            where=next(iter(never)),
            remedy="correct it, or the matrix, before it is frozen; afterwards only an amendment can",
        )


def _apart(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint on some tasks as one on those with an attribute of its own.

    Which tasks have which attributes is not registered, but how many: the made-up ones need not overlap as
    the study's will.
    """
    if not endpoint.attributes:
        return endpoint
    name = ",".join(f"{key}={value}" for key, value in sorted(endpoint.attributes.items()))
    return replace(endpoint, attributes={name: YES})


def _read(book: RuleBook, only: Collection[str]) -> set[str]:
    """Return what some rules read, and these rules."""
    rules = [book.rule(name) for name in only]
    return book.read_by({name for r in rules for name in (*book.names_of(r), r.id, r.interval, r.estimate)})


def _of_no_tasks(book: RuleBook, read: Collection[str] | None) -> dict[str, str]:
    """Return endpoints on some tasks whose numbers no tasks can have, with all numbers of their evaluation.

    Whatever the tasks are, each has one word of every attribute: their numbers by word are whole, and none is
    negative. Words that no endpoint names are taken together.
    """
    places: dict[tuple[tuple[str, str], ...], list[Endpoint]] = {}
    for endpoint in book.endpoints.values():
        if endpoint.register == "evaluations" and endpoint.tasks and (read is None or endpoint.id in read):
            places.setdefault(tuple(sorted(endpoint.where.items())), []).append(endpoint)
    return {
        f"endpoints.{endpoint.id}": f"no tasks are as many: {_numbers(there)}"
        for there in places.values()
        if any(endpoint.attributes for endpoint in there) and not _can_be(there, book.terms.attributes)
        for endpoint in there
        if endpoint.attributes
    }


def _of_nothing(book: RuleBook, read: Collection[str] | None) -> dict[str, str]:
    """Return endpoints of what an episode without an outcome has none of, and that count such."""
    return {
        f"endpoints.{endpoint.id}": f"a missing {measured} is not zero: say missing = {how}"
        for endpoint in book.endpoints.values()
        if (read is None or endpoint.id in read) and book.terms.missing
        for measured, how in [made_up(endpoint)]
        if measured
    }


def _can_be(endpoints: Sequence[Endpoint], attributes: Mapping[str, Sequence[str]]) -> bool:
    """Return whether there can be tasks of which each endpoint has its number."""
    z3 = solver()
    named: dict[str, set[str]] = {}
    for key, word in (item for endpoint in endpoints for item in endpoint.attributes.items()):
        named.setdefault(key, set()).add(word)
    words = [[*sorted(of), *([""] if of < {*attributes[key]} else [])] for key, of in named.items()]
    kinds = [dict(zip(named, chosen, strict=True)) for chosen in product(*words)]
    question = z3.Solver()
    numbers = [z3.Int(str(index)) for index in range(len(kinds))]
    question.add(*(number >= 0 for number in numbers))
    for endpoint in endpoints:
        its = (
            n for n, kind in zip(numbers, kinds, strict=True) if endpoint.attributes.items() <= kind.items()
        )
        question.add(z3.Sum(*its) == endpoint.tasks)
    return bool(question.check() != z3.unsat)


def _numbers(endpoints: Sequence[Endpoint]) -> str:
    """Return how many tasks endpoints are on, in words."""
    said = (
        f"{e.tasks} with {', '.join(in_words(e))}" if e.attributes else f"{e.tasks} in all" for e in endpoints
    )
    return "; ".join(dict.fromkeys(said))


def _undecided(book: RuleBook, study: SimulatedStudy, read: Collection[str] | None) -> dict[str, str]:
    """Return what has no value, with the reasons; of two for one reason, what comes first."""
    engine = Engine(book, (book.name, ""), study)
    asked: list[tuple[str, Callable[[], object]]] = [
        *((f"endpoints.{name}", partial(engine.value, name)) for name in book.endpoints),
        *((f"statistics.{name}", partial(engine.value, name)) for name in book.statistics),
        *((f"intervals.{name}", partial(engine.interval, name)) for name in book.intervals),
        *((f"tests.{name}", lambda name=name: engine.test(name).p) for name in book.tests),
        *((f"rules.{name}", lambda name=name: engine.decide(name).holds) for name in book.rules),
    ]
    if read is not None:
        asked = [(name, value) for name, value in asked if name.partition(".")[2] in read]
    found: dict[str, str] = {}
    for name, value in asked:
        reasons = _reasons(value)
        if reasons:
            found[name] = "; ".join(reasons[:MOST_SAID])
    return found


def _reasons(value: Callable[[], object]) -> tuple[str, ...]:
    """Return why there is no value; made-up figures may lie outside a declared range, which says nothing."""
    try:
        given = value()
    except DamagedError as error:
        if isinstance(error, RuleError):
            raise
        return ()
    if isinstance(given, Series):
        given = given.present()
    return given.reasons if isinstance(given, Missing) else ()


def check_rules(rules: str) -> None:
    """Check a draft's rules: each can pass and can miss, and is decided on the registered runs."""
    book = rulebook.load_rulebook(rules)
    if not book.rules:
        raise UsageError("there is no rule: nothing would be decided", where="rules.toml")
    unfilled = [line.strip() for line in rules.splitlines() if UNFILLED in line]
    if unfilled:
        raise UsageError("the template was not filled in", found=unfilled[0], where="rules.toml")
    evaluation.check_not_vacuous(book)
    if is_played_here(book):
        laboratory().expected(book)  # what is fixed twice agrees
    check_decidable(book)


def check_entry(registration: Registration, entry: Amendment | Deviation) -> None:
    """Check an amendment's rules with those before it, and that the rules a deviation names are there."""
    texts = [amendment.rules for amendment in registration.amendments]
    if not isinstance(entry, Amendment):
        book = rulebook.load_rulebook(registration.rules, texts)
        for name in entry.concerns:
            book.rule(name)
        return
    book = rulebook.load_rulebook(registration.rules, [*texts, entry.rules])
    changed = {*entry.replaces, *entry.restates, *entry.adds}
    resting = {rule.id for rule in book.rules.values() if changed & book.names_of(rule)}
    evaluation.check_not_vacuous(book, changed | resting)
    check_decidable(book, changed | resting)


Row = dict[str, Any]
Scores = tuple[Fraction, Fraction] | None

TASKS, SCHEDULES, COUNTED = 8, 2, 100
"""Sizes of what is played elsewhere, where the registration states none."""
YES, NO = "yes", "no"


class _Run(NamedTuple):
    """A run of the matrix: its row of `runs`, and what it is played as; None where that is elsewhere."""

    row: Row
    expected: ExpectedRun | None


@dataclass(frozen=True)
class SimulatedStudy:
    """What the registered runs would leave, with outcomes between two rates of success."""

    book: RuleBook  # the rules
    start: float  # start, end: success before training and at its end
    end: float
    name = "rehearsed"
    is_summary = False
    origin = None

    def has(self, table: str) -> bool:
        """Whether any run leaves rows of it."""
        return table == "episodes" or table in self._tables

    def rows(self, table: str) -> Sequence[Row]:
        """The rows of a table."""
        return self._tables[table]

    def success_counts(
        self, column: str, runs: Sequence[str], where: Mapping[str, str], steps: Sequence[int]
    ) -> Counts:
        """Successes by run and step, then by task."""
        scores = self.book.terms.scores
        return {
            place: {task: _added_up(column, count, scores) for task, count in counted.items()}
            for place in product(runs, steps)
            for row, counted in self._tasks.get(place, ())
            if where.items() <= row.items()
        }

    def hashed(self, table: str) -> dict[str, str]:  # noqa: ARG002
        """No file of it was hashed."""
        return {}

    def hashed_rows(self, table: str) -> None:
        """No row of it was hashed."""

    def derive(self, table: str, names: Collection[str]) -> None:
        """Its rows follow from none."""

    @cached_property
    def _runs(self) -> tuple[_Run, ...]:
        plan = self.book.plan
        is_played = any(cell.regime and (not cell.role or cell.role in plan.roles) for cell in plan.cells)
        played = laboratory().expected(self.book) if is_played else {}
        return tuple(
            _Run(_run_row(cell, arm, seed, played.get(name), plan.roles[0]), played.get(name))
            for cell in plan.cells
            for arm, seed in product(cell.arms, cell.seeds)
            for name in [run_name(cell.condition, arm, cell.scale_rewards, seed)]
        )

    @cached_property
    def _tables(self) -> dict[str, list[Row]]:
        tables: dict[str, list[Row]] = {"runs": [run.row for run in self._runs]}
        tables["evaluations"] = [row for row, _ in self._evaluated]
        tables["task_pools"] = self._pool_tasks()
        others = [e for e in self.book.endpoints.values() if e.register not in {"runs", "evaluations"}]
        at: dict[tuple[object, ...], list[Row]] = {}
        for endpoint in _particular_first(others):
            for place in self._places(endpoint):
                there = at.setdefault((endpoint.register, *place.values()), [])
                row = next((row for row in there if endpoint.where.items() <= row.items()), None)
                if row is None:
                    row = _blank(endpoint.register) | endpoint.where | place
                    there.append(row)
                    tables.setdefault(endpoint.register, []).append(row)
                _fill(row, endpoint)
        return {name: rows for name, rows in tables.items() if rows}

    def _pool_tasks(self) -> list[Row]:
        """Tasks that an attribute chooses, as many as are registered; of what is played here none has any."""
        chosen = [e for e in self.book.endpoints.values() if e.attributes]
        if any(run.expected for run in self._runs):
            return []
        sizes = {(e.where["pool"], name): e.tasks for e in chosen for name in e.attributes}
        rows = []
        for pool in dict.fromkeys(pool for pool, _ in sizes):
            mine = {name: size for (of, name), size in sizes.items() if of == pool}
            for index in range(max(e.tasks or TASKS for e in self.book.endpoints.values())):
                said = {name: YES if index < size else NO for name, size in mine.items()}
                rows.append({"pool": pool, "index": index, "attributes": attributes_text(said)})
        return rows

    @cached_property
    def _evaluated(self) -> tuple[tuple[Row, dict[int, TaskCount]], ...]:
        """Rows of `evaluations`, each with its tasks."""
        asked = [e for e in self.book.endpoints.values() if e.register == "evaluations"]
        last = max((step for endpoint in asked for step in endpoint.steps), default=0)
        found: list[tuple[Row, dict[int, TaskCount]]] = []
        for run in self._runs:
            played: list[Row] = []
            for where, step, tasks, schedules in _sets(run, asked):
                place = where | {"step": step}
                if any(place.items() <= row.items() for row in played):
                    continue
                length = run.expected.steps if run.expected else last
                success = self.start + (self.end - self.start) * (step / length if length else 0)
                row = _blank("evaluations") | _cell_of(run.row) | place
                made = _played(row, success, tasks, schedules, len(found))
                if run.expected is None:
                    made[0].update(_elsewhere(made[1].values(), self.book.terms.scores))
                found.append(made)
                played.append(found[-1][0])
        return tuple(found)

    @cached_property
    def _tasks(self) -> dict[tuple[str, int], list[tuple[Row, dict[int, TaskCount]]]]:
        """The same, by run and step."""
        found: dict[tuple[str, int], list[tuple[Row, dict[int, TaskCount]]]] = {}
        for row, counted in self._evaluated:
            found.setdefault((row["run_id"], row["step"]), []).append((row, counted))
        return found

    def _places(self, endpoint: Endpoint) -> Iterator[Row]:
        """Yield the rows, by run or checkpoint and step, in which an endpoint's numbers would stand."""
        steps: Sequence[Row] = [{"step": step} for step in endpoint.steps] or [{}]
        if endpoint.by == "row":
            yield from steps
        elif endpoint.by == "checkpoint":
            yield from (
                {"trajectory": t, "step": s}
                for t, s in endpoint.checkpoints
                if self._is_probed(endpoint, t, s)
            )
        else:
            for run, step in product(self._runs, steps):
                if _is_read(run.row, endpoint) and _is_left(run.expected, endpoint, step):
                    is_counted = run.expected and endpoint.register == "groups_summary"
                    sizes = {"groups": run.expected.groups} if run.expected and is_counted else {}
                    yield {**sizes, **_cell_of(run.row), **step}

    def _is_probed(self, endpoint: Endpoint, trajectory: str, step: int) -> bool:
        """Return whether a checkpoint is probed; of runs that are played elsewhere every one may be."""
        played = [run.expected for run in self._runs if run.expected]
        if not played:
            return True
        probe = self.book.probe
        if probe is None or endpoint.where.get("scored", probe.scored[0]) not in probe.scored:
            return False
        if trajectory == BASE:
            return step == 0
        probed = {run.row["run_id"]: run.expected.probed for run in self._runs if run.expected}
        return step in probed.get(trajectory, ()) and (not probe.steps or step in probe.steps)


def _particular_first(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """Sort endpoints so that a row that has all that another asks for is that one's, too."""
    return sorted(endpoints, key=lambda endpoint: -len(endpoint.where))


def _run_row(cell: Cell, arm: str, seed: int, run: ExpectedRun | None, role: str) -> Row:
    return {
        **_blank("runs"),
        **cell.fixed,
        "run_id": run_name(cell.condition, arm, cell.scale_rewards, seed),
        "condition": cell.condition,
        "arm": arm,
        "seed": seed,
        "scale_rewards": cell.scale_rewards or None,
        "role": run.role if run else cell.role or role,
        "status": "COMPLETE",
    }


def _blank(table: str) -> Row:
    return dict.fromkeys(TABLES[table].column_names)


def _cell_of(run: Row) -> Row:
    return {name: run[name] for name in ("run_id", "condition", "arm", "seed")}


def _is_read(run: Row, endpoint: Endpoint) -> bool:
    place = (run["condition"], run["scale_rewards"] or "")
    is_there = place == (endpoint.condition, endpoint.scale_rewards)
    return is_there and run["arm"] in endpoint.arms and run["seed"] in endpoint.seeds


def _sets(run: _Run, asked: Sequence[Endpoint]) -> Iterator[tuple[Row, int, Sequence[int], int]]:
    """Yield the evaluations of a run: where, step, positions of its tasks, schedules."""
    if run.expected is not None:
        yield from run.expected.evaluations
        return
    for endpoint in _particular_first(sorted(asked, key=lambda endpoint: -endpoint.tasks)):
        if _is_read(run.row, endpoint):
            for step in endpoint.steps:
                yield (
                    dict(endpoint.where),
                    step,
                    range(endpoint.tasks or TASKS),
                    endpoint.schedules or SCHEDULES,
                )


def _played(
    row: Row, success: float, tasks: Sequence[int], schedules: int, number: int
) -> tuple[Row, dict[int, TaskCount]]:
    """Return an evaluation with made-up outcomes: its row, and its tasks."""
    drawn = np.random.default_rng(number).binomial(schedules, success, len(tasks)).tolist()
    counted = {task: TaskCount(schedules, schedules - 1, won) for task, won in zip(tasks, drawn, strict=True)}
    episodes, successes = len(tasks) * schedules, sum(drawn)
    exposed = episodes // 2
    return {
        **row,
        "episodes": episodes,
        "successes": successes,
        "observed_successes": successes,
        "flipped": 0,
        "exposed": exposed,
        "recovered": min(exposed, successes) // 2,
        "finished": episodes,
        "budget_exceeded": 0,
        "calls": episodes,
        "tasks": len(tasks),
        "episodes_per_task": schedules,
        "task_set": task_set_sha256(tasks),
    }, counted


def _elsewhere(tasks: Collection[TaskCount], scores: Scores) -> Row:
    """Return what only evaluations have that are played elsewhere."""
    names = ("score", "tokens", "cost")
    return {name: sum(_added_up(name, count, scores).successes for count in tasks) for name in names}


def _added_up(column: str, count: TaskCount, scores: Scores) -> TaskCount:
    """Return the made-up successes of a task as another column adds up: failures have the lowest score."""
    if column in {"true_success", "observed_reward"}:
        return count
    if column != "score":
        return count._replace(successes=count.episodes)
    low, high = scores or (Fraction(0), Fraction(1))
    return count._replace(successes=float(low * count.episodes + (high - low) * count.successes))


def _is_left(run: ExpectedRun | None, endpoint: Endpoint, step: Row) -> bool:
    """Return whether a run that is played here leaves such a row."""
    if run is None:
        return True
    where = endpoint.where
    match endpoint.register:
        case "groups_summary":
            return run.groups is not None
        case "luck_share_summary":
            known, steps = run.diagnosed
            fits = all(where.get(name, value) == value for name, value in known.items())
            return fits and where.get("target", "true_success") in TARGETS and step.get("step") in steps
        case _:
            return False


def _fill(row: Row, endpoint: Endpoint) -> None:
    """Give a row the columns that an endpoint reads, where it does not have them."""

    def give(column: str, value: object) -> Any:
        if row[column] is None:
            row[column] = value
        return row[column]

    for column, value in endpoint.expect.items():
        give(column, value)
    draw = np.random.default_rng([len(row), *repr(sorted(map(repr, row.items()))).encode()])
    share = draw.uniform(0.2, 0.8)
    outcome = endpoint.outcome
    if outcome.is_rate:
        total = give(outcome.of, COUNTED)
        give(outcome.columns[0], int(share * total))
    else:
        low, high = float(endpoint.low), float(min(endpoint.high, endpoint.low + 1))
        below = give(outcome.over, 1.0) if outcome.over else 1.0
        give(outcome.figure, (low + share * (high - low)) * float(below))
