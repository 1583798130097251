"""An evaluation in progress: a folder with one file a block. One command at a time writes in it.

    evaluation.json     of which policy, by which code: written first
    blocks/…            what was played
    registers/          the study, once all of it was played

A block's file:

    SHA-256 of everything below, in hexadecimal
    JSON: the SHA-256 of the evaluation's identity, and the block's name
    JSON: its rows

A block is a job, which is all that another process needs. Its answer depends on the job alone, so that jobs
can be done in any order, in any place, and again.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toolkit
from toolkit import errors, files, seeds
from toolkit.canonical import canonical
from toolkit.lab.evaluation import diagnostic, language_model, play
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.executors import folder as folders
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.policies.language_model.opening import LIBRARIES, Opening, open_engine
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.devices import KEPT
from toolkit.noise.regimes import REGIMES
from toolkit.registers import arrow, schema

IDENTITY = "evaluation.json"
BLOCKS = "blocks"
LOCK = ".lock"
REGISTERS = "registers"
MOST_NAMES = 5
OF_CODE = ("toolkit", "schema", "pools")
ROOT = "toolkit evaluate"
"""What the seeds derive from: no registration's, so that no registered run meets them."""
PHASE = "final"
DIAGNOSTIC = "diagnostic"
EPISODES, LUCK_SHARE = "episodes", "luck_share"
OWN, SHARED = "own", "shared"


@dataclass(frozen=True)
class Asked:
    """What an evaluation is to play."""

    regimes: tuple[str, ...]  # the noise of each set
    pool: str = "test"  # pool of the sets' tasks
    tasks: int = 200  # how many of its tasks
    # How many schedules a task. Under noise that is not drawn they are all the same, and repeat what the
    # policy samples.
    schedules: int = 4
    luck_share: bool = True  # whether the diagnostic is played, too, under each regime whose noise is drawn
    seed: int = 0  # number of the sampling: another one samples anew, under the same schedules
    # What the policy samples in the sets: its `own`, or `shared` by all that are asked so. The diagnostic
    # has its own, always.
    sampling: str = OWN

    def evaluation(self, regime: str) -> EvaluationSet:
        """Return the set of a regime; the challenge, which draws nothing, has one schedule, as registered."""
        schedules = 1 if REGIMES[regime].challenge else self.schedules
        return EvaluationSet(PHASE, self.pool, regime, self.tasks, schedules)

    @property
    def diagnosed(self) -> tuple[str, ...]:
        """The regimes whose luck share is measured: under the others no schedule differs from another."""
        return tuple(regime for regime in self.regimes if self.luck_share and _is_drawn(regime))

    @property
    def diagnosed_tasks(self) -> int:
        """How many tasks of the diagnostic are played."""
        return min(self.tasks, POOLS[DIAGNOSTIC].size)


@dataclass(frozen=True)
class BlockJob:
    """Play a block."""

    opening: Opening  # the engine
    table: str  # `episodes` of a set, or `luck_share`
    evaluation: EvaluationSet  # the set; of a diagnostic, its pool and regime
    first: int  # position of the block's first task
    beyond: int  # position after its last
    seed: int  # number of the sampling
    sampling: str  # `own` or `shared`

    @property
    def name(self) -> str:
        """Name of the block, unique in an evaluation."""
        of = self.evaluation
        return f"{self.table}-{of.regime}-{of.pool}-{self.first:04}-{self.beyond:04}-{of.schedules}"

    @property
    def subject(self) -> str:
        """What the job is about."""
        return str(self)

    @property
    def episodes(self) -> int:
        """How many episodes it has."""
        samples = diagnostic.SAMPLES if self.table == LUCK_SHARE else 1
        return (self.beyond - self.first) * self.evaluation.schedules * samples

    def __str__(self) -> str:
        return f"{self.evaluation.regime}, {self.evaluation.pool}:{self.first} to {self.beyond - 1}"


def jobs(opening: Opening, asked: Asked) -> tuple[BlockJob, ...]:
    """Return the jobs of an evaluation: its sets, then its diagnostics."""
    sets = [
        BlockJob(opening, EPISODES, evaluation, block.start, block.stop, asked.seed, asked.sampling)
        for evaluation in map(asked.evaluation, asked.regimes)
        for block in language_model.blocks(evaluation.tasks, evaluation.schedules)
    ]
    tables = [
        BlockJob(
            opening,
            LUCK_SHARE,
            EvaluationSet(PHASE, DIAGNOSTIC, regime, asked.diagnosed_tasks, diagnostic.SCHEDULES),
            block.start,
            block.stop,
            asked.seed,
            OWN,
        )
        for regime in asked.diagnosed
        for block in language_model.blocks(asked.diagnosed_tasks, diagnostic.SCHEDULES * diagnostic.SAMPLES)
    ]
    return (*sets, *tables)


def perform(job: BlockJob) -> list[arrow.Row]:
    """Do a job."""
    of = job.evaluation
    shared = play.SharedSamples(f"{ROOT} {job.seed}") if job.sampling == SHARED else None
    sampling = language_model.Sampling(of.regime, 0, shared or seeds.sampling_seed(ROOT, of.regime, job.seed))
    tasks = range(job.first, job.beyond)
    engine = open_engine(job.opening)
    if job.table == LUCK_SHARE:
        return language_model.diagnose_block(engine, of.regime, of.pool, tasks, sampling)
    return language_model.evaluate_block(engine, of, tasks, sampling)


def _is_drawn(regime: str) -> bool:
    """Whether schedules differ under a regime: faults or flips are drawn."""
    return REGIMES[regime].mixture is not None or REGIMES[regime].flip_rate > 0


@dataclass(frozen=True)
class EvaluatedBlocks:
    """What came of playing."""

    rows: dict[str, list[arrow.Row]]  # table → its rows
    kept: int  # blocks that had been played before
    played: int  # blocks that were played now


def identity(policy: dict[str, Any], asked: Asked, pools: dict[str, str]) -> dict[str, Any]:
    """Return what all blocks of a folder have in common."""
    return {
        **policy,
        "seed": asked.seed,
        "sampling": asked.sampling,
        "pools": pools,
        "toolkit": toolkit.__version__,
        "schema": schema.SCHEMA_VERSION,
    }


@dataclass(frozen=True)
class EvaluationFolder:
    """The folder of an evaluation."""

    folder: Path  # the folder
    identity: dict[str, Any]  # what all its blocks have in common

    @property
    def registers(self) -> Path:
        """Where its study is."""
        return self.folder / REGISTERS

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for one command alone, once it is clear that it is this evaluation's."""
        blocks = self.folder / BLOCKS
        with folders.held(self.folder, {LOCK: "evaluation's folder"}, [blocks]):
            self._check_identity()
            blocks.mkdir(exist_ok=True)
            yield

    def play(self, opening: Opening, asked: Asked, executor: Executor = HERE) -> EvaluatedBlocks:
        """Play what is not there yet, and return the rows of all that was asked for."""

        def keep(job: BlockJob, rows: list[arrow.Row]) -> list[arrow.Row]:
            payload = f"{canonical(self._header(job))}\n{canonical(rows)}\n".encode()
            files.write_durably(self._path(job), files.sealed(payload))
            return rows

        blocks = jobs(opening, asked)
        results, before = folders.go_on(
            executor.on_gpus(KEPT) if opening.engine in LIBRARIES else executor,
            blocks,
            perform,
            kept=lambda job: self._kept(job, executor),
            keep=keep,
            size=lambda job: job.episodes,
        )
        tables: dict[str, list[arrow.Row]] = {}
        for job, rows in zip(blocks, results, strict=True):
            tables.setdefault(job.table, []).extend(rows)
        return EvaluatedBlocks(tables, len(before), len(blocks) - len(before))

    def _check_identity(self) -> None:
        path = self.folder / IDENTITY
        if not path.is_file():
            others = sorted(part.name for part in self.folder.iterdir() if not part.name.startswith("."))
            if others:
                raise errors.IncompleteError(
                    "the folder holds something, and nothing says of which evaluation",
                    expected=f"{IDENTITY}, or nothing",
                    found=", ".join(others[:MOST_NAMES]),
                    where=self.folder,
                    remedy="restore the file, or give another folder (--out)",
                )
            files.write_durably(path, folders.document_bytes(self.identity))
            return
        there = folders.read_document(path, "restore it, or give another --out")
        differing = [n for n in sorted({*there, *self.identity}) if there.get(n) != self.identity.get(n)]
        if not differing:
            return
        of_code = set(differing) <= set(OF_CODE)
        raise errors.UsageError(
            "the folder holds an evaluation by another version of this package"
            if of_code
            else "the folder holds an evaluation with other samples: own and shared ones are not mixed"
            if differing == ["sampling"]
            else "the folder holds an evaluation of another policy",
            expected=_named(there, differing),
            found=_named(self.identity, differing),
            where=path,
            remedy="go on with that version, or give another folder (--out): two versions are not mixed"
            if of_code
            else "give another folder (--out), or what this one was begun with",
        )

    def _path(self, job: BlockJob) -> Path:
        return self.folder / BLOCKS / job.name

    def _header(self, job: BlockJob) -> dict[str, str]:
        return {
            "evaluation": hashlib.sha256(canonical(self.identity).encode()).hexdigest(),
            "block": job.name,
        }

    def _kept(self, job: BlockJob, executor: Executor) -> list[arrow.Row] | None:
        """Return a block's rows; None where it was not played, or its file is no longer whole."""
        path = self._path(job)
        if not path.is_file():
            return None
        payload = files.unsealed(files.read_bytes(path, files.LARGEST_ROWS))
        if payload is None:
            aside = folders.set_aside(path).name
            executor.say(f"{job.name} was cut short or changed; kept as {aside}, and played again")
            return None
        header, rows = map(json.loads, payload.splitlines())
        if header != self._header(job):
            raise errors.DamagedError(
                "a block belongs to another evaluation, or to another place in this one",
                expected=canonical(self._header(job)),
                found=canonical(header),
                where=path,
                remedy="put back the file that belongs here, or move this one away: it will be played again",
            )
        return list(rows)


def _named(document: dict[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {json.dumps(document.get(name), ensure_ascii=False)}" for name in names)
