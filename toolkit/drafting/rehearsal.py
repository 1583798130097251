"""A draft rehearsed on a pilot: what it would decide, what it could see, and what would make it undecidable.

The pilot is smaller than the study, and of other seeds: the draft's endpoints are fitted to the runs, steps
and sizes that the pilot has. Nothing that comes of it is a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.decisions.decision import Decision, missing_says
from toolkit.decisions.engine import Engine
from toolkit.decisions.evaluation import check_not_vacuous
from toolkit.decisions.measure import in_words, rows_of, tasks_named
from toolkit.drafting import simulation
from toolkit.drafting.power import Power, fit, simulate
from toolkit.errors import IncompleteError, RuleError, UsageError
from toolkit.prereg.record import UNFILLED
from toolkit.registers.importing.mapping import TableMapping
from toolkit.registers.importing.source import Log
from toolkit.registers.importing.tables import counted, files_of
from toolkit.registers.importing.tables import rows_of as rows_of_log
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.study import Study, open_study
from toolkit.registers.writer import write_study
from toolkit.rules.endpoints import Endpoint
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.rules.values import Missing
from toolkit.structs import replace
from toolkit.verification.decidable import check_decidable

if TYPE_CHECKING:
    import polars as pl

DECIDES_NOTHING = "rehearsed on a pilot: it decides nothing"
NO_DRAFT = "0" * 64
TASK_SD = 0.25


@dataclass(frozen=True)
class Rehearsal:
    """What came of a rehearsal."""

    study: Study  # the pilot's registers
    book: RuleBook  # the draft's rules, fitted to the pilot
    engine: Engine  # what decides them
    decisions: tuple[Decision, ...]  # on the pilot; none of them counts
    powers: Mapping[str, tuple[Power, ...] | str]  # rule → what it would see at registered size, or why not
    problems: tuple[str, ...]  # what would make the registration undecidable, or keeps it from being frozen
    fitted: tuple[str, ...]  # what of the draft was fitted to the pilot, in words
    rows: pl.DataFrame  # the pilot's rows
    undecided: tuple[str, ...]  # rules that had no verdict on them, each with the reason


def rehearse(
    rules: str,
    mapping: TableMapping,
    log: Log,
    folder: Path,
    *,
    simulations: int,
    rng_seed: int,
    progress: Callable[[str], None],
) -> Rehearsal:
    """Rehearse a draft.

    1. Its rules are read, and everything that a freeze would refuse is listed.
    2. The pilot becomes registers.
    3. The rules are fitted to its runs, steps and sizes, and decided.
    4. What each rule would see in studies of the registered size is simulated, as far as it can be.
    """
    book = load_rulebook(rules)  # 1
    problems = tuple(_problems(rules, book))
    progress("reading the pilot")
    declared = book.terms.scores, book.terms.missing, book.terms.attributes  # 2
    rows = rows_of_log(log.measured(mapping.columns), mapping, *declared)
    tables = counted(rows, *declared[:2])
    words = {name: tuple(tables[of][name].unique().sort().to_list()) for name, of in _SAID_IN.items()}
    write_study(
        folder,
        study=mapping.study,
        evidence="rows",
        files=files_of(tables, words),
        registration=RegistrationRef(mapping.registration, NO_DRAFT, {}),
        words=words,
        documents={},
    )
    study = open_study(folder)
    progress("deciding")
    fitted, changes = _fitted(book, study)  # 3
    problems += _empty(book, study)
    engine = Engine(fitted, (book.name, NO_DRAFT), _Pilot(study))
    decisions = engine.decide_all()
    undecided = tuple(
        f"{decision.rule} has no verdict on the pilot; {missing_says(decision)}"
        for decision in decisions
        if decision.verdict == "not_evaluable"
    )
    powers: dict[str, tuple[Power, ...] | str] = {}  # 4
    simulated = [rule for rule in book.rules.values() if simulations and rule.estimate]
    for number, rule in enumerate(simulated, 1):
        progress(f"power of {rule.id}, rule {number} of {len(simulated)}")
        powers[rule.id] = _power(book, fitted, study, rule.id, (simulations, rng_seed))
    return Rehearsal(
        study, fitted, engine, decisions, powers, (*problems, *undecided), changes, rows, undecided
    )


_SAID_IN = {"arm": "runs", "regime": "episodes", "pool": "episodes"}


class _Pilot(Study):
    """Registers that were made just now from the pilot's own rows."""

    def __init__(self, study: Study) -> None:
        super().__init__(study.folder, study.manifest)

    def derive(self, table: str, names: object) -> None:
        """Its rows follow from its episodes: they were counted from them."""


def _problems(rules: str, book: RuleBook) -> Sequence[str]:
    found = [f"not filled in: {line.strip()}" for line in rules.splitlines() if UNFILLED in line]
    for check in (check_not_vacuous, check_decidable):
        try:
            check(book)
        except RuleError as error:
            found.append(str(error))
    return found


def _empty(book: RuleBook, study: Study) -> tuple[str, ...]:
    """Return the endpoints on some tasks of which the pilot has none."""
    return tuple(
        f"endpoints.{e.id}: no task of the pilot has {', '.join(in_words(e))}"
        for e in book.endpoints.values()
        if e.attributes and tasks_named(e, study) == frozenset()
    )


def _fitted(book: RuleBook, study: Study) -> tuple[RuleBook, tuple[str, ...]]:
    """Return the rules as they can be read on a pilot, and what was changed of them."""
    runs = study.rows("runs")
    seeds = {
        (cell.condition, arm): {
            r["seed"] for r in runs if (r["condition"], r["arm"]) == (cell.condition, arm)
        }
        for cell in book.plan.cells
        for arm in cell.arms
    }
    cells = tuple(
        replace(cell, seeds=tuple(sorted(set().union(*(seeds[cell.condition, arm] for arm in cell.arms)))))
        for cell in book.plan.cells
    )
    endpoints = {name: _endpoint(endpoint, study, seeds) for name, endpoint in book.endpoints.items()}
    changes = tuple(
        f"{name}: {what}" for name in endpoints for what in _changes(book.endpoints[name], endpoints[name])
    )
    return replace(book, plan=replace(book.plan, cells=cells), endpoints=endpoints), changes


def _endpoint(endpoint: Endpoint, study: Study, seeds: Mapping[tuple[str, str], set[int]]) -> Endpoint:
    """Return an endpoint of the seeds, the steps and the sizes that the pilot has of it."""
    if endpoint.register != "evaluations" or not endpoint.arms:
        return endpoint
    there = set.intersection(*(seeds.get((endpoint.condition, arm), set()) for arm in endpoint.arms))
    named = tasks_named(endpoint, study) if endpoint.attributes else frozenset()
    if isinstance(named, Missing):
        return endpoint
    measured = rows_of(replace(endpoint, tasks=len(named)), study)
    if isinstance(measured, Missing):
        return endpoint
    rows = [row for row in measured if endpoint.where.items() <= row.items() and row["arm"] in endpoint.arms]
    steps = tuple(step for step in endpoint.steps if any(row["step"] == step for row in rows))
    if not there or not rows or not steps:
        return endpoint
    tasks = len(named) or max(row["tasks"] for row in rows)
    schedules = max(row["episodes_per_task"] for row in rows)
    expect = {"episodes": tasks * schedules} if "episodes" in endpoint.expect else {}
    return replace(
        endpoint,
        seeds=tuple(sorted(there)),
        steps=steps,
        over_steps=endpoint.over_steps if len(steps) > 1 else "",
        tasks=tasks if endpoint.tasks else 0,
        schedules=schedules if endpoint.schedules else 0,
        expect=endpoint.expect | expect,
    )


def _changes(registered: Endpoint, fitted: Endpoint) -> list[str]:
    """Return how an endpoint on the pilot differs from the registered one, in words."""
    names = ("seeds", "steps", "tasks", "schedules")
    return [
        f"{name} {_cell(getattr(fitted, name))} instead of {_cell(getattr(registered, name))}"
        for name in names
        if getattr(fitted, name) != getattr(registered, name)
    ]


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _power(
    book: RuleBook, fitted: RuleBook, study: Study, rule_id: str, drawn: tuple[int, int]
) -> tuple[Power, ...] | str:
    """Return what a rule would see with no effect, at its threshold and beyond; or why that is not known."""
    rule = book.rule(rule_id)
    seeds = len(book.endpoints[rule.estimate].seeds) if rule.estimate in book.endpoints else 0
    threshold = float(rule.threshold or 0)
    try:
        components = fit(fitted, study, rule_id, task_sd=TASK_SD, rng_seed=drawn[1])
        return tuple(
            simulate(
                book,
                rule_id,
                components,
                simulation.Design(effect, components.seed_sd, TASK_SD, seeds, None, *drawn),
            )
            for effect in dict.fromkeys((0.0, threshold, 2 * threshold))
        )
    except (UsageError, IncompleteError) as error:
        return str(error).splitlines()[0]
