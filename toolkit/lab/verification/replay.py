"""Playing a registered row again, from the run's checkpoint before it.

Steps, whose numbers the code repeats:

1. Read the run's specification and the newest checkpoint before the row; of a run whose checkpoints are not
   kept, the untrained policy.
2. An episode of an evaluation is played by the checkpoint itself, a training group by the weights of
   its step: training goes on from the checkpoint up to there, and every group on the way has to come out as
   registered.
3. What comes out has to be what the register says, column by column.

For whoever steps through episodes, a handful of both designs under the same schedules is chosen by a rule:

4. The pair: of the runs that can be played again here, those of the highest fault rate under which both
   designs trained with advantages scaled alike; of several, the first condition and seed in the register.
5. The episodes: those of the last step, of the periodic evaluation at training noise. Both runs met the same
   tasks under the same schedules.
6. Tasks and schedules are sorted by what came of them: both succeeded, only paired, only independent,
   neither. Of each sort, the two on which most faults landed, in both together; ties go to the first.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, islice, product
from pathlib import PurePosixPath
from typing import Any

import msgspec
import numpy as np

from toolkit import errors, seeds
from toolkit.decisions.measure import Registers
from toolkit.errors import DamagedError
from toolkit.lab.episodes.episode import Episode
from toolkit.lab.evaluation import diagnostic, play
from toolkit.lab.evaluation.diagnostic import POOL as DIAGNOSTIC
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.play import segments
from toolkit.lab.play.rows import (
    check_registered,
    keeps_checkpoints,
    rows_of_run,
    run_file,
    run_row,
    specification_of,
    table_of_run,
)
from toolkit.lab.policies.loglinear import Policy, layout, untrained
from toolkit.lab.probe import design, evidence
from toolkit.lab.probe.checkpoint import coordinate_blocks, play_and_score
from toolkit.lab.probe.evidence import Scored
from toolkit.lab.probing.design import RegisteredProbe
from toolkit.lab.probing.run import trajectory_sampling
from toolkit.lab.training import checkpoint, grpo
from toolkit.lab.training.checkpoint import Weights, start
from toolkit.lab.training.rows import draws_at
from toolkit.lab.worlds.world import AnyEpisode
from toolkit.noise import draws, regimes
from toolkit.registers import row_tables
from toolkit.registers.arrow import Row, to_rows
from toolkit.registers.row_tables import BASE
from toolkit.registers.study import Study, specification_document
from toolkit.rooms import Audited
from toolkit.specification import CODE, Specification
from toolkit.verification.summaries import SUMMARIES


class Replayer:
    """Plays the rows of one run again."""

    def __init__(self, study: Study, run_id: str) -> None:
        self._study = study
        self.run_id = run_id
        run_file(study, "episodes", run_id)
        keeps = keeps_checkpoints(run_row(study, run_id))
        kept = rows_of_run(study, "checkpoints", run_id) if keeps else ()  # 1
        self._checkpoints = {row["step"]: row for row in kept}
        self.specification: Specification = specification_of(study, run_id)
        if not self.specification.trains:
            check_registered(self.specification, list(self._checkpoints.values()), f"checkpoints of {run_id}")
        self._reached = {0: start(untrained(self.specification.surface_tokens))}
        self._sampling = seeds.sampling_seed(self.specification.root, run_id, self.specification.seed)
        self._weights_before = lru_cache(maxsize=2)(self._trained_to)
        self._groups: dict[int, list[Row]] | None = None

    def rows(self, table: str) -> list[Any]:
        """Return the run's rows of a table."""
        return rows_of_run(self._study, table, self.run_id)

    def check(self, table: str, row: Any) -> None:
        """Play a row again and compare."""
        match table:
            case "episodes":
                self.played(row)
            case "luck_share":
                at = {
                    "run_id": self.run_id,
                    "pool": DIAGNOSTIC,
                    "regime": diagnostic.regime_diagnosed(self.specification.regime),
                    **{name: row[name] for name in ("step", "task", "schedule")},
                }
                if row["step"] not in self.specification.diagnosed:
                    problem = f"{self.run_id} has a luck-share table that is not registered"
                    expected = f"steps {', '.join(map(str, self.specification.diagnosed))}"
                    raise errors.VerificationError(problem, expected=expected, found=row["step"])
                policy = self._policy(self._weights_before(row["step"]))
                again = diagnostic.diagnosed_row(policy, at, self._sampling, self.specification.world)
                same(f"{table} of {self.run_id}", row, again)
            case "checkpoints" if not self.specification.trains:
                self._at_checkpoint(row["step"])
            case "checkpoints":  # the weights that training gives, from the checkpoint before it
                before = self._weights_before(max(row["step"] - 1, 0))
                self._check_checkpoint(self._trained(before) if row["step"] else before)
            case _:
                self._trained(self._weights_before(row["step"] - 1))

    def evaluated(self, phase: str, regime: str, step: int, task: int, schedule: int) -> AnyEpisode:
        """Play one episode of an evaluation, every call kept."""
        at = {"phase": phase, "regime": regime, "step": step, "task": task, "schedule": schedule}
        self._set(at)
        row = next((row for row in self.rows("episodes") if all(row[name] == at[name] for name in at)), None)
        if row is None:
            known = ", ".join(map(str, self.specification.ends))
            raise errors.UsageError("the run has no such evaluation", expected=f"steps {known}", found=step)
        return self.played(row, traced=True)

    def played(self, row: Row, *, traced: bool = False) -> AnyEpisode:
        """Play the episode of an evaluation row, and compare it with the row."""
        episode = self.episode(row, traced=traced)
        again = play.episode_row(self.run_id, self._set(row), row["step"], row["schedule"], episode)
        same(f"episodes of {self.run_id}", row, again)
        return episode

    def episode(self, row: Row, *, traced: bool = False) -> AnyEpisode:
        """Play the episode of an evaluation row."""
        policy = self._policy(self._at_checkpoint(row["step"]))  # 2
        at, sampling = (row["task"], row["schedule"]), segments.evaluated_with(self.specification)
        return play.play_episode(policy, self._set(row), row["step"], sampling, at, traced=traced)

    def rollout(self, step: int, position: int, slot: int) -> AnyEpisode:
        """Play one rollout of a training group, every call kept."""
        specification = self.specification
        if not specification.trains:
            raise errors.UsageError(
                f"{self.run_id} trains nothing, and has no training step",
                expected="an episode of an evaluation: --regime, --task and --schedule",
            )
        if not 1 <= step <= specification.steps:
            raise errors.UsageError(
                "there is no such training step", expected=f"1 to {specification.steps}", found=step
            )
        weights = self._weights_before(step - 1)
        rows = self._registered(step)
        groups = tuple(islice(draws_at(specification, step), len(rows)))
        if position >= len(groups) or slot >= specification.group_size:
            raise errors.UsageError(
                "there is no such rollout",
                expected=f"position below {len(groups)}, slot below {specification.group_size}",
                found=f"position {position}, slot {slot}",
            )
        policy = self._policy(weights)
        _, episode = grpo.play_rollout(specification, policy, step, groups[position], slot, traced=True)
        row = rows[position]
        outcome = {"true_success": episode.true_success, "observed_reward": bool(episode.observed_reward)}
        expected = {
            "true_success": row["true_successes"][slot],
            "observed_reward": row["observed_rewards"][slot],
        }
        same(f"rollout {slot} of group {position} at step {step} of {self.run_id}", expected, outcome)  # 3
        return episode

    def _set(self, row: Mapping[str, Any]) -> EvaluationSet:
        sets = segments.sets_of(self.specification, row["step"])
        wanted = (row["phase"], row["regime"])
        chosen = next((each for each in sets if (each.phase, each.regime) == wanted), None)
        if chosen is None or row["task"] not in chosen.positions or row["schedule"] >= chosen.schedules:
            expected = ", ".join(f"{each.name} ({each.tasks} tasks × {each.schedules})" for each in sets)
            found = f"{row['phase']}/{row['regime']}, task {row['task']}, schedule {row['schedule']}"
            raise errors.UsageError("the run has no such episode", expected=expected, found=found)
        return chosen

    def _policy(self, weights: Weights) -> Policy:
        return Policy(weights.parameters, self.specification.surface_tokens)

    def _at_checkpoint(self, step: int) -> Weights:
        if not self.specification.keeps_checkpoints and step in self.specification.ends:
            return self._weights_before(step)
        if step not in self._checkpoints:
            known = ", ".join(map(str, sorted(self._checkpoints)))
            raise errors.UsageError("the run has no checkpoint at that step", expected=known, found=step)
        size = layout(self.specification.surface_tokens).size
        return checkpoint.read_checkpoint(self._checkpoints[step], self.run_id, size)

    def _trained_to(self, step: int) -> Weights:
        """Return the weights after a step: training goes on from the newest checkpoint up to it."""
        if self.specification.keeps_checkpoints:
            weights = self._at_checkpoint(max(known for known in self._checkpoints if known <= step))  # 2
        else:
            weights = self._reached[max(known for known in self._reached if known <= step)]
        if not weights.step:
            self._check_checkpoint(self._reached[0])
        while weights.step < step:
            weights = self._trained(weights)
        return weights

    def _trained(self, weights: Weights) -> Weights:
        after, rows = grpo.train_step(self.specification, weights)
        registered = self._registered(after.step) if self.specification.keeps_groups else rows
        if len(registered) != len(rows):
            problem = f"step {after.step} of {self.run_id} has another number of groups"
            raise errors.DamagedError(problem, expected=len(rows), found=len(registered))
        for row, again in zip(registered, rows, strict=True):
            same(f"group {row['position']} at step {row['step']} of {self.run_id}", row, again)  # 3
        self._check_checkpoint(after)
        if after.step in self.specification.ends:
            self._reached[after.step] = after
        return after

    def _check_checkpoint(self, weights: Weights) -> None:
        """Compare weights with the checkpoint of their step, where there is one."""
        row = self._checkpoints.get(weights.step)
        if row is not None:
            subject = f"the checkpoint at step {weights.step} of {self.run_id}"
            same(subject, row, checkpoint.checkpoint_row(self.run_id, weights))

    def _registered(self, step: int) -> list[Row]:
        if self._groups is None:
            self._groups = {}
            for row in self.rows("groups"):
                self._groups.setdefault(row["step"], []).append(row)
        return self._groups.get(step, [])


def same(what: str, registered: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Compare a row with what came out."""
    for name, value in registered.items():
        if found.get(name) != value:
            raise errors.VerificationError(
                f"{what} came out otherwise",
                expected=str(value)[: errors.EXCERPT],
                found=str(found.get(name))[: errors.EXCERPT],
                where=name,
                remedy="the register was changed, or the code that made it: see toolkit study run --check",
            )


OF_EACH = 2
NEEDED = ("runs", "episodes", "checkpoints")
PHASE = "periodic"
CHOSEN = (
    "Chosen by a rule, not by hand: of the highest fault rate under which both designs trained, the first "
    "condition and seed; of these two runs, the episodes of the last step on the periodic evaluation at "
    "training noise; of each sort of outcome (both succeeded, only paired, only independent, neither), the "
    f"{OF_EACH} tasks and schedules on which most faults landed."
)


@dataclass(frozen=True)
class ReplayedEpisode:
    """A recorded episode, played again: it came out as its row says."""

    run: Row  # the run's row of `runs`
    row: Row  # its row of `episodes`
    episode: Episode  # the episode with every call kept


def choose_pairs(study: Study) -> tuple[ReplayedEpisode, ...]:
    """Recorded episodes in pairs, paired design first; nothing where the study cannot be played here."""
    runs = _pair(study)
    if runs is None:
        return ()
    replayers = [Replayer(study, run["run_id"]) for run in runs]
    tables = [_last_rows(replayer) for replayer in replayers]
    played = []
    for at in _most_exposed(*tables):
        for run, replayer, table in zip(runs, replayers, tables, strict=True):
            row = table[at]
            episode = replayer.played(row, traced=True)
            if isinstance(episode, Episode):  # as every playable run's is
                played.append(ReplayedEpisode(run, row, episode))
    return tuple(played)


def _pair(study: Study) -> tuple[Row, ...] | None:
    """Return the runs of both designs of the first condition and seed that has them."""  # 4
    if not all(study.has(table) for table in NEEDED):
        return None
    cells: dict[tuple[Any, ...], dict[str, Row]] = {}
    rates: dict[str, float] = {}
    for run in study.rows("runs"):
        specification = playable(run)
        if specification is None or run["arm"] not in draws.DESIGNS:
            continue
        regime = regimes.REGIMES[specification.regime]
        if regime.mixture is None:
            continue
        rates[run["run_id"]] = regime.fault_rate
        cell = (run["condition"], specification.scale_rewards, specification.battery, run["seed"])
        cells.setdefault(cell, {})[run["arm"]] = run
    whole = [arms for arms in cells.values() if set(arms) == set(draws.DESIGNS)]
    if not whole:
        return None
    arms = max(whole, key=lambda arms: rates[arms[draws.DESIGNS[0]]["run_id"]])  # of several, the first
    return tuple(arms[design] for design in draws.DESIGNS)


def playable(run: Row) -> Specification | None:
    """Return the specification of a run that can be played here; None where other code made it."""
    try:
        document = json.loads(run.get("specification") or "")
        specification = msgspec.convert(document, Specification)
    except ValueError:
        return None
    return (
        specification
        if specification.code == CODE and specification.regime in regimes.REGIMES and not specification.world
        else None
    )


def _last_rows(replayer: Replayer) -> dict[tuple[int, int], Row]:
    """Return the rows of the last step at training noise, by task and schedule."""  # 5
    specification = replayer.specification
    wanted = {"phase": PHASE, "regime": specification.at_noise, "step": specification.steps}
    rows = [
        row for row in replayer.rows("episodes") if all(row[name] == value for name, value in wanted.items())
    ]
    if not rows:
        problem = f"{replayer.run_id} has no periodic episodes at training noise at its last step"
        expected = ", ".join(f"{name} {value}" for name, value in wanted.items())
        raise DamagedError(problem, expected=expected, found="none", where="episodes")
    return {(row["task"], row["schedule"]): row for row in rows}


def _most_exposed(
    paired: dict[tuple[int, int], Row], independent: dict[tuple[int, int], Row]
) -> Sequence[tuple[int, int]]:
    """Return the tasks and schedules chosen, by sort of outcome."""  # 6
    sorts: dict[tuple[bool, ...], list[tuple[int, int]]] = {
        sort: [] for sort in product((True, False), repeat=2)
    }
    for at in sorted(paired.keys() & independent.keys()):
        sorts[paired[at]["true_success"], independent[at]["true_success"]].append(at)

    def faults(at: tuple[int, int]) -> int:
        return sum(row_tables.faults_landed(rows[at]) for rows in (paired, independent))

    return [at for places in sorts.values() for at in sorted(places, key=faults, reverse=True)[:OF_EACH]]


SEEDS = 5
OF_ONE_RUN = (
    "of the run's last evaluation, at training noise, the first that succeeded, the first that failed and "
    "the first on which a fault landed"
)


def choose_of_runs(study: Study) -> dict[str, tuple[ReplayedEpisode, ...] | str]:
    """Return by run a few episodes, played again as `OF_ONE_RUN` says; or, in words, why there are none."""
    seeds: dict[tuple[str, str], set[int]] = {}
    for run in study.rows("runs"):
        seeds.setdefault((run["condition"], run["arm"]), set()).add(run["seed"])
    early = {cell: sorted(of_cell)[:SEEDS] for cell, of_cell in seeds.items()}
    chosen: dict[str, tuple[ReplayedEpisode, ...] | str] = {}
    for run in study.rows("runs"):
        is_early = run["seed"] in early[run["condition"], run["arm"]]
        chosen[run["run_id"]] = _why_none(study, run, is_early=is_early) or _of_run(study, run)
    return chosen


def _why_none(study: Study, run: Row, *, is_early: bool) -> str:
    specified = run.get("specification")
    if not study.has_rows("episodes", run["run_id"]):
        return "the registers hold no row of them"
    if not specified:
        return "the registers do not say what played them"
    if playable(run) is None:
        is_foreign = bool(specification_document(run).get("world"))
        return f"it takes the {'world' if is_foreign else 'model'} that they were played with"
    if not keeps_checkpoints(run) or not study.has_rows("checkpoints", run["run_id"]):
        return "the registers keep no checkpoint of this run, and to play one again is to train it again"
    return "" if is_early else f"those of the first {SEEDS} seeds of each condition and arm are"


def _of_run(study: Study, run: Row) -> tuple[ReplayedEpisode, ...]:
    replayer = Replayer(study, run["run_id"])
    table = table_of_run(study, "episodes", run["run_id"])
    phases, regimes, steps = (table[name].to_pylist() for name in ("phase", "regime", "step"))
    order = [(phase != PHASE, step) for phase, step in zip(phases, steps, strict=True)]
    last = max(set(order))
    at = [n for n, when in enumerate(order) if when == last]
    at = [n for n in at if regimes[n] == replayer.specification.at_noise] or at
    rows: list[Any] = to_rows(table.take(at))
    wanted = (
        next((row for row in rows if row["true_success"]), None),
        next((row for row in rows if not row["true_success"]), None),
        next((row for row in rows if row_tables.faults_landed(row)), None),
    )
    different = {(row["task"], row["schedule"]): row for row in wanted if row}.values()
    played = ((row, replayer.played(row, traced=True)) for row in different)
    return tuple(
        ReplayedEpisode(run, row, episode) for row, episode in played if isinstance(episode, Episode)
    )


PLAYED_WITH = "checkpoints"
"""The table without which no row of a run that keeps it can be played again."""

ADAPTERS = "adapters"
PROBED = "probe_gram"
COMPARED = ("pool", "regime", "rewards", "tokens", "weights", "gram")
"""Columns that one task's rollouts give; products with other tasks follow from all of them."""

DERIVED = (*SUMMARIES, *design.DERIVED)
PLAYABLE = ("episodes", "groups", "luck_share", "checkpoints", PROBED)


def audit(
    study: Study,
    sample: int,
    seed: int,
    registered: Mapping[str, Specification],
    progress: Callable[[int, str], None],
    *,
    probe: RegisteredProbe | None = None,
    registers: Registers | None = None,
) -> Audited:
    """Play random rows of a study again, and derive random rows that follow from such."""
    check_playable(study)
    chosen, total = _draw(study, sample, seed, [table for table in PLAYABLE if table != PROBED or probe])
    with _drawn_with(sample, seed):
        derived = _derive(registers, sample, seed) if registers else {}
    played = 0
    for run_id in sorted(chosen):
        with _drawn_with(sample, seed):
            for check, row in _checks(study, run_id, sorted(chosen[run_id]), registered, probe):
                progress(played, run_id)
                check(row)
                played += 1
    counts = {table: sum(t == table for places in chosen.values() for t, _ in places) for table in PLAYABLE}
    return Audited(total, counts, tuple(sorted(chosen)), derived)


def _derive(registers: Registers, sample: int, seed: int) -> dict[str, int]:
    """Derive random rows again; return how many of each table."""
    tables = [name for name in DERIVED if registers.has(name)]
    counts = {}
    for turn, name in enumerate(tables):
        rows = registers.rows(name)
        drawn = _drawn(registers.name, name, seed, len(rows), _share(sample, turn, len(tables)))
        chosen = (rows[at] for at in drawn)
        registers.derive(name, {str(r.get("run_id") or f"{r['trajectory']}@{r['step']}") for r in chosen})
        counts[name] = len(drawn)
    return counts


def _share(sample: int, turn: int, tables: int) -> int:
    """Return how many rows of a sample are drawn of one of several tables."""
    return sample // tables + (turn < sample % tables)


def _drawn(study: str, table: str, seed: int, rows: int, count: int) -> list[int]:
    stream = seeds.Stream(seeds.derive("audit/v1", seed, study, table))
    return stream.sample(range(rows), min(count, rows))


@contextmanager
def _drawn_with(sample: int, seed: int) -> Iterator[None]:
    """Have an error say how its row is drawn again."""
    try:
        yield
    except errors.ToolkitError as error:
        again = f"to draw this row again: --sample {sample} --seed {seed}"
        raise error.restated(remedy="; ".join(filter(None, (error.remedy, again)))) from None


def _checks(
    study: Study,
    name: str,
    places: list[tuple[str, int]],
    registered: Mapping[str, Specification],
    probe: RegisteredProbe | None,
) -> Iterator[tuple[Callable[[Row], None], Row]]:
    """Yield what checks each row that was drawn of a run or trajectory, and the row."""
    of_run = [(table, at) for table, at in places if table != PROBED]
    if of_run:
        replayer = Replayer(study, name)
        if name not in registered:
            raise errors.VerificationError(
                f"{name} is no run of the registered matrix", expected=", ".join(list(registered)[:5])
            )
        expected, found = registered[name].document(), replayer.specification.document()
        same(f"the specification of {name}", expected, found)
        for table, at in of_run:
            yield partial(replayer.check, table), replayer.rows(table)[at]
    if probe is not None and len(of_run) < len(places):
        prober = ProbeReplayer(study, probe)
        rows = prober.rows(name)
        yield from ((prober.check, rows[at]) for table, at in places if table == PROBED)


def check_playable(study: Study) -> None:
    """Check that a study holds rows that can be played again."""
    if is_playable(study):
        return
    if study.has(ADAPTERS):
        raise errors.IncompleteError(
            f"the rows of {study.name!r} are a language model's, and are not played again one by one",
            expected="checkpoints of a policy that comes out the same to the last bit on every machine",
            found="adapters: what a model says and scores has the last digits of its machine and libraries",
            where=study.folder,
            remedy="with the model that the runs start from: `toolkit probe run STUDY --check` samples and "
            "scores the whole probe again; without it: `toolkit probe report --study STUDY --check` computes "
            "every figure from the evidence",
        )
    problem = f"study {study.name!r} holds no rows that can be played again"
    remedy = "audit a study that ships its rows: --study embedded"
    raise errors.IncompleteError(problem, where=study.folder, remedy=remedy)


def is_playable(study: Study) -> bool:
    """Whether rows of a study can be played again: from its checkpoints, or from where its runs started."""
    runs = study.rows("runs") if study.has("runs") else ()
    return study.has(PLAYED_WITH) or any(not keeps_checkpoints(run) for run in runs)


def _draw(
    study: Study, sample: int, seed: int, playable: list[str]
) -> tuple[dict[str, list[tuple[str, int]]], int]:
    """Draw rows of every table; return run → (table, position in its file), and how many there are."""
    tables = [table for table in playable if study.has(table)]
    chosen: dict[str, list[tuple[str, int]]] = {}
    total = 0
    for turn, table in enumerate(tables):
        files = study.manifest.tables[table].files
        ends = list(accumulate(study.manifest.files[name].rows or 0 for name in files))
        total += ends[-1]
        for number in _drawn(study.name, table, seed, ends[-1], _share(sample, turn, len(tables))):
            file = bisect_right(ends, number)
            at = number - (ends[file - 1] if file else 0)
            chosen.setdefault(PurePosixPath(files[file]).stem, []).append((table, at))
    return chosen, total


class ProbeReplayer:
    """Probes rows of `probe_gram` of a study's registered probe again."""

    def __init__(self, study: Study, probe: RegisteredProbe) -> None:
        self._study = study
        self._design = probe.design
        self._runs = {run.run_id: run for run in probe.runs}
        self._played = lru_cache(maxsize=4)(self._play)

    def rows(self, trajectory: str) -> list[Row]:
        """Return a trajectory's rows of evidence."""
        return rows_of_run(self._study, "probe_gram", trajectory)

    def check(self, row: Row) -> None:
        """Play and score a row's rollouts again, and compare."""
        subject = f"probe_gram of {row['trajectory']}@{row['step']}, {row['scored']}, task {row['task']}"
        sets = {rollouts.noise: rollouts for rollouts in self._design.sets}
        expected = {run for run in self._runs if row["step"]} or {BASE}
        if row["trajectory"] not in expected or row["task"] >= sets[row["noise"]].tasks:
            problem = "a row of evidence belongs to no registered checkpoint or task"
            raise errors.VerificationError(problem, expected=", ".join(sorted(expected)[:5]), found=subject)
        played = self._played(row["trajectory"], row["step"], row["noise"], row["task"])
        rollouts = sets[row["noise"]]
        measured = {
            "pool": rollouts.pool,
            "regime": rollouts.regime,
            "rewards": [bool(reward) for reward in played.rewards[0]],
            "tokens": played.tokens[row["scored"]][0].tolist(),
            "weights": played.weights[0].tolist(),
            "gram": self._gram(played, row),
        }
        same(subject, {name: row[name] for name in COMPARED}, measured)

    def _gram(self, played: Scored, row: Row) -> list[float]:
        run = next(iter(self._runs.values())) if row["trajectory"] == BASE else self._runs[row["trajectory"]]
        parts = coordinate_blocks(layout(run.surface_tokens), self._design.scored)
        matrix = evidence.inner_products(played.scores[..., parts[design.ACTIONS]])
        if row["scored"] == design.ALL and run.surface_tokens:
            matrix = matrix + evidence.inner_products(played.scores[..., parts[design.ALL]])
        upper = np.triu_indices(matrix.shape[-1])
        return list(matrix[0][upper].tolist())

    def _play(self, trajectory: str, step: int, noise: str, task: int) -> Scored:
        run = next(iter(self._runs)) if trajectory == BASE else trajectory
        rows = rows_of_run(self._study, "checkpoints", run)
        parameters = [row["parameters"] for row in rows if row["step"] == step]
        if not parameters:
            problem = "a row of evidence belongs to no checkpoint"
            expected = ", ".join(str(row["step"]) for row in rows)
            raise errors.VerificationError(problem, expected=expected, found=f"{trajectory}@{step}")
        policy = Policy(parameters[0], self._runs[run].surface_tokens)
        rollouts = next(rollouts for rollouts in self._design.sets if rollouts.noise == noise)
        sampling = trajectory_sampling(self._design, trajectory)
        return play_and_score(policy, rollouts, sampling, step, [task])
