"""Auditing a study: rows drawn at random and played again, each from its run's checkpoint."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import PurePosixPath

import numpy as np

from toolkit import errors, seeds
from toolkit.decisions.measure import Registers
from toolkit.lab.play.rows import keeps_checkpoints, rows_of_run
from toolkit.lab.policies.loglinear import Policy, layout
from toolkit.lab.probe import design, evidence
from toolkit.lab.probe.checkpoint import coordinate_blocks, play_and_score
from toolkit.lab.probe.evidence import Scored
from toolkit.lab.probing.design import RegisteredProbe
from toolkit.lab.probing.run import trajectory_sampling
from toolkit.lab.verification import replay
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import BASE
from toolkit.registers.study import Study
from toolkit.rooms import Audited
from toolkit.specification import Specification
from toolkit.verification.summaries import SUMMARIES

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
        replayer = replay.Replayer(study, name)
        if name not in registered:
            raise errors.VerificationError(
                f"{name} is no run of the registered matrix", expected=", ".join(list(registered)[:5])
            )
        expected, found = registered[name].document(), replayer.specification.document()
        replay.same(f"the specification of {name}", expected, found)
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
    raise errors.IncompleteError(
        f"study {study.name!r} holds no rows that can be played again",
        where=study.folder,
        remedy="audit a study that ships its rows: --study embedded",
    )


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
            raise errors.VerificationError(
                "a row of evidence belongs to no registered checkpoint or task",
                expected=", ".join(sorted(expected)[:5]),
                found=subject,
            )
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
        replay.same(subject, {name: row[name] for name in COMPARED}, measured)

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
            raise errors.VerificationError(
                "a row of evidence belongs to no checkpoint",
                expected=", ".join(str(row["step"]) for row in rows),
                found=f"{trajectory}@{step}",
            )
        policy = Policy(parameters[0], self._runs[run].surface_tokens)
        rollouts = next(rollouts for rollouts in self._design.sets if rollouts.noise == noise)
        sampling = trajectory_sampling(self._design, trajectory)
        return play_and_score(policy, rollouts, sampling, step, [task])
