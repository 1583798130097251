"""What the laboratory does for the core: it specifies registered runs, and derives and replays their rows."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from toolkit.canonical import document_sha256
from toolkit.decisions.measure import Registers
from toolkit.errors import DamagedError, IncompleteError, ToolkitError
from toolkit.lab import task_pools
from toolkit.lab.evaluation import diagnostic
from toolkit.lab.play import conclusion
from toolkit.lab.play.conclusion import shortcomings
from toolkit.lab.play.matrix import Selection, specify, specify_registered
from toolkit.lab.play.rows import check_copies
from toolkit.lab.play.segments import sets_of
from toolkit.lab.probing import design
from toolkit.lab.task_pools import TABLE, check_specified, digests, row_document
from toolkit.lab.training.checkpoint import adapter_sha256, checkpoint_sha256
from toolkit.lab.training.rows import GroupPlan, draws_at
from toolkit.lab.worlds.published.faults import evaluation_seed
from toolkit.lab.worlds.published.foreign import POOLS
from toolkit.prereg.adoption import Folder
from toolkit.prereg.evidence import anchor
from toolkit.prereg.registration import Registration
from toolkit.registers import arrow
from toolkit.registers.arrow import Row
from toolkit.registers.episode_counts import CountedRun
from toolkit.registers.row_tables import TABLES_OF_PROBE
from toolkit.registers.study import Study
from toolkit.registers.validation import compare
from toolkit.rooms import Audited, ExpectedRun, Regenerated
from toolkit.rules.rulebook import RuleBook
from toolkit.specification import Specification
from toolkit.structs import replace

FIRST = 1
"""The step whose groups are held against the registration: those of the others are drawn alike."""
MOST_NAMES = 5
NEAR = 1e-4
"""Advantages of a language model are single-precision numbers of its trainer's."""
_PLACE = ("run_id", "condition", "arm", "seed", "role", "scale_rewards")


class RegisteredRuns:
    """The specifications that a registration gives its runs: `toolkit.rooms.RegisteredRuns`."""

    def __init__(self, registration: Registration, book: RuleBook) -> None:
        self._root = ""
        self._registration = registration
        # The standing says that a token is missing; all but the root of the seeds can be compared.
        with suppress(IncompleteError):
            self._root = anchor(registration)
        tiers = tuple({cell.tier for cell in book.plan.cells if cell.regime})
        runs = specify(book.plan, (registration.name, self._root), {}, Selection(tiers=tiers))
        self._runs = {run.run_id: run for run in runs}

    def place(self, run: str) -> Row:
        """Return what a run's row says of its place in the matrix; nothing of one that is not registered."""
        registered = self._runs.get(run)
        return {} if registered is None else {name: getattr(registered, name) for name in _PLACE}

    def specification(self, run: str, stored: str | None) -> Specification | None:
        """Return the specification that the registration gives a run."""
        if stored is None and run not in self._runs:
            return None
        if run not in self._runs:
            problem = f"{run} is no run of the registered matrix"
            expected = ", ".join(list(self._runs)[:MOST_NAMES])
            remedy = "the registers belong to another registration, or to none"
            raise DamagedError(problem, expected=expected, where="runs", remedy=remedy)
        claimed = _document(run, stored)
        registered = self._runs[run]
        if not registered.world:
            registered = replace(registered, pools=claimed.get("pools", {}))
        return registered if self._root else replace(registered, root=str(claimed.get("root")))

    def policy(self, specification: Specification) -> str:
        """Return what a run trains, in a word."""
        return conclusion.policy_of(specification)

    def row(
        self,
        study: Study,
        specification: Specification,
        counted: CountedRun | None,
        tables: Mapping[str, Any],
        *,
        is_mixed: bool,
    ) -> Row:
        """Return a run's row of `runs` as its specification and its rows give it."""
        _check_first_groups(specification, tables.get("groups"))
        lacks = bool(shortcomings(specification, counted, tables)) or is_mixed
        if not (specification.trains or lacks):
            check_copies(study, specification)
        return conclusion.run_row(specification, counted, tables, lacks=lacks)

    def check(
        self, study: Study, specified: Mapping[str, Specification], progress: Callable[[str], None]
    ) -> None:
        """Check a study against its registered runs."""
        _check_launches(study, specified)
        _check_pools(study, list(specified.values()))
        check_tied(study, specified)
        check_published(study, specified)
        if any(study.has(name) for name in TABLES_OF_PROBE):
            from toolkit.lab.probing.figures import recompute

            probe = design.required_probe(self._registration, specified.values())
            recompute(study, study.rows(design.CHECKPOINTS), probe, progress)


class Laboratory:
    """What the entry point names: `toolkit.rooms.Laboratory`."""

    @property
    def played_how(self) -> str:
        """How the episodes of a run are chosen."""
        from toolkit.lab.verification.replay import OF_ONE_RUN

        return OF_ONE_RUN

    def runs(self, registration: Registration, book: RuleBook) -> RegisteredRuns:
        """Return the registered runs."""
        return RegisteredRuns(registration, book)

    def expected(self, book: RuleBook) -> Mapping[str, ExpectedRun]:
        """Return what the runs of a matrix will leave, by name."""
        runs = specify(book.plan, ("", ""), {})
        probed = () if book.probe is None else design.probed_runs(book.probe, runs)
        return {run.run_id: _expected(run, is_probed=run in probed) for run in runs}

    def check_probe(
        self, study: Study, registration: Registration, book: RuleBook, table: str, names: Collection[str]
    ) -> None:
        """Check rows of a table of the probe, checkpoint by checkpoint."""
        from toolkit.lab.probe.design import DERIVED
        from toolkit.lab.probing.figures import by_place, figures

        if table not in DERIVED:
            return
        registered = design.registered_design(registration, book)
        if registered is None:
            problem = f"{table} of study {study.name!r} follows from no registered probe"
            expected = "a table [probe] in the rules or in an amendment"
            raise DamagedError(problem, expected=expected, where=registration.folder)
        meant = (row for row in study.rows(table) if f"{row['trajectory']}@{row['step']}" in names)
        stored = by_place(meant)
        derived = figures(study, registered, stored, [table])[table]
        for place, rows in stored.items():
            compare(table, derived[place], rows)

    def has_registered_probe(self, study: Study, registration: Registration, book: RuleBook) -> bool:
        """Whether the registered probe measured all that a study holds of one."""
        registered = design.registered_design(registration, book)
        return registered is not None and design.is_measured_by(registered, study)

    def is_playable(self, study: Study) -> bool:
        """Whether rows of a study can be played again."""
        from toolkit.lab.verification.replay import is_playable

        return is_playable(study)

    def check_playable(self, study: Study) -> None:
        """Check that a study holds rows that can be played again."""
        from toolkit.lab.verification.replay import check_playable

        check_playable(study)

    def lack(self, study: Study) -> ToolkitError | None:
        """Return why rows of such a study cannot be played again here, or nothing."""
        from toolkit.lab.worlds.world import missing

        return missing(study)

    def audit(
        self,
        study: Study,
        registration: Registration,
        sample: int,
        seed: int,
        progress: Callable[[int, str], None],
        *,
        registers: Registers | None = None,
    ) -> Audited:
        """Play random rows of a study again; derive as many that follow, where its registers are given."""
        from toolkit.lab.verification.replay import audit

        runs = registered_runs(study, registration)
        probe = design.registered_probe(registration, runs.values())
        return audit(study, sample, seed, runs, progress, probe=probe, registers=registers)

    def played_of_runs(self, study: Study) -> dict[str, Sequence[Mapping[str, object]] | str]:
        """Return a few episodes of every run as documents, with their rows' places; or why there are none."""
        from toolkit.lab.episodes.document import episode_document
        from toolkit.lab.verification.replay import choose_of_runs

        return {
            run: chosen
            if isinstance(chosen, str)
            else [{**p.row, **episode_document(p.episode), "task": p.row["task"]} for p in chosen]
            for run, chosen in choose_of_runs(study).items()
        }

    def regenerate(
        self, checkout: Folder, pools: Mapping[str, str], progress: Callable[[str], None]
    ) -> tuple[Regenerated, dict[str, bytes]]:
        """Generate the published tasks with a checkout's words; what holds these is returned too, by name."""
        from toolkit.lab.worlds.published.tasks import regenerate

        return regenerate(checkout, pools, progress)

    def hold_against_draws(self, study: Study, progress: Callable[[str], None]) -> str:
        """Hold published figures against what the published seeds draw, and say what came of it."""
        from toolkit.lab.worlds.published.audit import TABLES, audit

        if absent := _absent(study, TABLES):
            return f"{absent}: nothing is held against draws"
        return audit({name: study.rows(name) for name in TABLES}, progress).sentence

    def play_published(self, study: Study, sample: int, seed: int, progress: Callable[[str], None]) -> str:
        """Generate the published tasks, play random figures of the published agents, and say so."""
        from toolkit.lab.worlds.published.audit import PLAYED, play_again

        if absent := _absent(study, PLAYED):
            return f"{absent}: nothing is played again"
        return play_again({name: study.rows(name) for name in PLAYED}, sample, seed, progress)

    @property
    def not_public(self) -> str:
        """What of the published study cannot be played by anybody else."""
        from toolkit.lab.worlds.published.audit import NOT_PUBLIC

        return NOT_PUBLIC

    def probe_figures(self, study: Study) -> list[Any]:
        """Return how certain a study's probe figures are, as far as the study allows."""
        from toolkit.lab.probing.figures import report

        return [row for rows in report(study).figures.values() for row in rows]


def _absent(study: Study, tables: Collection[str]) -> str:
    """Say which table a study lacks, as one of an earlier schema does."""
    return next((f"it has no table {name}" for name in tables if not study.has(name)), "")


def registered_runs(study: Study, registration: Registration) -> dict[str, Specification]:
    """Return the specification of every run that a study's registration has, by name."""
    there = set(study.columns(TABLE, ("pool",))["pool"].to_pylist())
    pools = digests([name for name in task_pools.STUDY_POOLS if name in there], study, lambda _: None)
    return {run.run_id: run for run in specify_registered(registration, pools)}


def _document(run: str, stored: str | None) -> dict[str, Any]:
    try:
        document = json.loads(stored or "{}")
        if isinstance(document, dict) and isinstance(document.get("pools", {}), dict):
            return document
    except (ValueError, RecursionError):
        pass
    raise DamagedError(f"the specification of {run} is none", found=str(stored)[:80], where="runs")


def _expected(run: Specification, *, is_probed: bool) -> ExpectedRun:
    luck = {"pool": diagnostic.POOL, "regime": diagnostic.regime_diagnosed(run.regime)}
    return ExpectedRun(
        run.role,
        run.steps,
        tuple(
            ({"phase": at.phase, "pool": at.pool, "regime": at.regime}, step, at.positions, at.schedules)
            for step in run.ends
            for at in sets_of(run, step)
        ),
        run.groups if run.trains and run.keeps_groups else None,
        (luck, run.diagnosed),
        run.ends if is_probed else (),
    )


def _check_first_groups(specification: Specification, groups: Any) -> None:
    """Check that the groups of a run's first step are those that its seeds draw: no other run's are."""
    if groups is None:
        return
    played = int((arrow.numbers(groups["step"]) == FIRST).sum())
    drawn = list(islice(draws_at(specification, FIRST), max(played, specification.prompts_per_step)))
    first = groups.slice(0, len(drawn)).select(["run_id", "step", *GroupPlan._fields])
    rows = [
        {"run_id": specification.run_id, "step": FIRST, **plan._asdict()}
        | {"schedule_seeds": list(plan.schedule_seeds)}
        for plan in drawn
    ]
    compare("groups", rows, arrow.to_rows(first))


def _check_launches(study: Study, specified: Mapping[str, Specification]) -> None:
    for launch in study.rows("launches") if study.has("launches") else ():
        specification = specified.get(launch["run_id"])
        if specification is not None and launch["specification_sha256"] != specification.sha256():
            problem = "a run was launched with another specification"
            expected = specification.sha256()
            where = f"launches row run_id={launch['run_id']}, attempt={launch['attempt']}"
            raise DamagedError(problem, expected=expected, found=launch["specification_sha256"], where=where)


def _check_pools(study: Study, specified: Collection[Specification]) -> None:
    if not specified:
        return
    for row in study.rows(TABLE):
        found = document_sha256(row_document(row))
        if found != row["sha256"]:
            problem = "a task is not the one of its digest"
            expected = f"SHA-256 {row['sha256']}"
            where = f"{TABLE} row pool={row['pool']}, index={row['index']}"
            raise DamagedError(problem, expected=expected, found=f"SHA-256 {found}", where=where)
    names = {name for specification in specified for name in specification.pools}
    met = digests(names, study, lambda _: None)
    for specification in specified:
        for name, sha256 in specification.pools.items():
            check_specified(name, met[name], sha256)


def check_published(study: Study, specified: Mapping[str, Specification]) -> None:
    """Check that schedules in the published study's world have its authors' seeds."""
    has_theirs = specified and all(run.has_published_schedules for run in specified.values())
    if not (has_theirs and study.has("schedules")):
        return
    for row in study.rows("schedules"):
        seed = evaluation_seed(f"{POOLS[row['pool']]}-{row['task']:05d}", row["schedule"] + 1)
        compare("schedules", [row | {"schedule_seed": seed}], [row])


def check_tied(study: Study, specified: Mapping[str, Specification]) -> None:
    """Check what rows say twice."""
    for table, digest in (("checkpoints", checkpoint_sha256), ("adapters", adapter_sha256)):
        for row in study.rows(table) if study.has(table) else ():
            if row["run_id"] in specified:
                at = f"{table} row run_id={row['run_id']}, step={row['step']}"
                _same("a checkpoint is not the one that was written", row["sha256"], digest(row), at)
    for run, groups in _groups(study) if specified else ():
        if run in specified:
            _check_advantages(run, groups, scaled=specified[run].scale_rewards == "group")


def _groups(study: Study) -> Iterator[tuple[str, Any]]:
    if not study.has("groups"):
        return
    table = study.columns("groups", ("run_id", "step", "position", "observed_rewards", "advantages"))
    start, names = 0, [*table["run_id"].to_pylist(), None]
    for at in range(1, len(names)):
        if names[at] != names[start]:
            yield names[start], table.slice(start, at - start)
            start = at


def _check_advantages(run: str, groups: Any, *, scaled: bool) -> None:
    import numpy as np

    from toolkit.estimators.advantages import mean_centred, standardized

    lists = {name: groups[name].combine_chunks() for name in ("observed_rewards", "advantages")}
    if any(len(set(np.diff(arrow.numbers(values.offsets)).tolist())) != 1 for values in lists.values()):
        return  # counting the groups says what is wrong with these
    rewards, advantages = (
        arrow.numbers(values.flatten()).reshape(len(groups), -1).astype(float) for values in lists.values()
    )
    given = (standardized if scaled else mean_centred)(rewards)
    differing = np.flatnonzero((np.abs(given - advantages) > NEAR * (1 + np.abs(given))).any(axis=1))
    if len(differing):
        at = int(differing[0])
        _same(
            "the advantages of a group are not what its rewards give",
            given[at].tolist(),
            advantages[at].tolist(),
            f"groups row run_id={run}, step={groups['step'][at]}, position={groups['position'][at]}",
        )


def _same(subject: str, expected: object, found: object, where: str) -> None:
    if expected != found:
        remedy = "restore the file, or rebuild the registers from the runs"
        raise DamagedError(subject, expected=expected, found=found, where=where, remedy=remedy)
