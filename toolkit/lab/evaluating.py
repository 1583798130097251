"""Evaluating a model or an agent without training it: a folder with one file a block, and its study.

    evaluation.json     of which policy, by which code: written first
    blocks/…            what was played
    registers/          the study, once all of it was played

A block's file:

    SHA-256 of everything below, in hexadecimal
    JSON: the SHA-256 of the evaluation's identity, and the block's name
    JSON: its rows
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from numpy.typing import NDArray

import toolkit
from toolkit import errors, files, seeds
from toolkit.canonical import canonical
from toolkit.estimators import task_uncertainties, taskwise
from toolkit.lab.evaluation import diagnostic, language_model, play
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.executors import folder as folders
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.play import assemble
from toolkit.lab.policies.language_model.opening import LIBRARIES, Opening, open_engine
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.devices import KEPT
from toolkit.noise.regimes import REGIMES
from toolkit.registers import arrow, manifest, row_tables, schema, writer
from toolkit.registers.arrow import Row
from toolkit.registers.manifest import UNREGISTERED
from toolkit.structs import Document, about
from toolkit.verification import summaries

IDENTITY = "evaluation.json"
BLOCKS = "blocks"
LOCK = ".lock"
MOST_NAMES = 5
OF_CODE = ("toolkit", "schema", "pools")
ROOT = "toolkit evaluate"
"""What the seeds derive from: no registration's, so that no registered run meets them."""
PHASE = "final"
DIAGNOSTIC = "diagnostic"
EPISODES, LUCK_SHARE = "episodes", "luck_share"
OWN, SHARED = "own", "shared"


@dataclass(frozen=True)
class Request:
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
        drawn = [name for name in self.regimes if REGIMES[name].mixture or REGIMES[name].flip_rate > 0]
        return tuple(drawn) if self.luck_share else ()

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


def jobs(opening: Opening, asked: Request) -> tuple[BlockJob, ...]:
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


@dataclass(frozen=True)
class EvaluatedBlocks:
    """What came of playing."""

    rows: dict[str, list[arrow.Row]]  # table → its rows
    kept: int  # blocks that had been played before
    played: int  # blocks that were played now


def identity(policy: dict[str, Any], asked: Request, pools: dict[str, str]) -> dict[str, Any]:
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
        return self.folder / "registers"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for one command alone, once it is clear that it is this evaluation's."""
        blocks = self.folder / BLOCKS
        with folders.held(self.folder, {LOCK: "evaluation's folder"}, [blocks]):
            self._check_identity()
            blocks.mkdir(exist_ok=True)
            yield

    def play(self, opening: Opening, asked: Request, executor: Executor = HERE) -> EvaluatedBlocks:
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
            folders.write_document(path, self.identity)
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


ARM = "evaluated"
WORDS = {"arm": (ARM,)}
LONGEST_NAME = 64
Engine = Literal["transformers", "vllm", "endpoint", "scripted"]
Sampling = Literal["own", "shared"]
Target = Literal["true_success", "observed_reward"]
TARGETS: tuple[Target, ...] = get_args(Target)
MEASURES = ("success", "observed", "calls", "exposed")


class Measure(Document, frozen=True):
    """A mean over episodes, with its interval over tasks."""

    estimate: Annotated[float, about("The mean.")]
    low: Annotated[float | None, about("Null with a single task.")]
    high: Annotated[float | None, about("Null with a single task.")]
    level: Annotated[float, about("Confidence level.")] = summaries.LEVEL


class EvaluatedSet(Document, frozen=True, kw_only=True):
    """What was found under one regime."""

    regime: Annotated[str, about("The noise.")]
    pool: Annotated[str, about("The task pool.")]
    tasks: Annotated[int, about("How many tasks.")]
    episodes: Annotated[int, about("How many episodes.")]
    success: Annotated[Measure, about("True success, a rate.")]
    observed: Annotated[Measure, about("Observed reward, a rate.")]
    calls: Annotated[Measure, about("Calls an episode.")]
    exposed: Annotated[Measure, about("Share of episodes that met a fault.")]
    ended: Annotated[dict[str, int], about("Episodes by what ended them.")]


class LuckShare(Document, frozen=True):
    """The luck share of a regime and a reward."""

    regime: Annotated[str, about("The noise.")]
    target: Annotated[Target, about("The reward.")]
    luck_share: Annotated[float | None, about("λ, mean over tasks; null where the reward never varied.")]
    pooled: Annotated[float | None, about("λ of all tasks together.")]
    low: Annotated[float | None, about("Lower end of the interval.")]
    high: Annotated[float | None, about("Upper end of the interval.")]
    level: Annotated[float, about("Confidence level.")]
    tasks: Annotated[int, about("How many tasks.")]
    tasks_defined: Annotated[int, about("Tasks that have a share.")]


class EvaluationRegisters(Document, frozen=True):
    """The registers of an evaluation."""

    study: Annotated[str, about("Name of the study.")]
    folder: Annotated[str, about("Where they lie.")]
    logical_sha256: Annotated[str, about("Of what the rows say.")]


class Blocks(Document, frozen=True):
    """Blocks of an evaluation."""

    kept: Annotated[int, about("From before.")]
    played: Annotated[int, about("By this command.")]


class Evaluation(Document, frozen=True, kw_only=True):
    """A model under every regime, without training."""

    model: Annotated[str, about("As it was named.")]
    engine: Annotated[Engine, about("What ran it.")]
    sampling: Annotated[Sampling, about("Whether every model meets the same noise at every token.")]
    identity: Annotated[dict[str, Any], about("What all blocks have in common: the engine's settings.")]
    server: Annotated[dict[str, Any] | None, about("What the server says of the model.")]
    folder: Annotated[str | None, about("Null where nothing was kept.")]
    registers: EvaluationRegisters | None
    blocks: Blocks
    sets: list[EvaluatedSet]
    luck_share: list[LuckShare]


def study_name(model: str) -> str:
    """Return the name of a model's study: that of the model, in the characters that a study's may have."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", model.rstrip("/").rpartition("/")[2]).strip("-_")
    return (name or "model")[:LONGEST_NAME]


def write_registers(
    folder: Path, study: str, identity: Mapping[str, Any], rows: Mapping[str, Sequence[Row]]
) -> manifest.Manifest:
    """Write an evaluation's study; the same rows give the same bytes."""
    document = (json.dumps(identity, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
    return writer.write_study(
        folder,
        study=study,
        evidence="rows",
        registration=manifest.RegistrationRef(UNREGISTERED, hashlib.sha256(document).hexdigest(), {}),
        files=_files(identity, rows),
        documents={IDENTITY: document},
        words=WORDS,
    )


def figures(rows: Mapping[str, Sequence[Row]]) -> list[EvaluatedSet]:
    """Return what was found under each regime: rates, calls and exposure, with intervals over tasks."""
    return [
        EvaluatedSet(
            regime=regime,
            pool=episodes[0]["pool"],
            tasks=len({row["task"] for row in episodes}),
            episodes=len(episodes),
            **_measured(episodes),
            ended=dict(sorted(Counter(row["ended"] for row in episodes).items())),
        )
        for regime, episodes in _by_regime(rows[EPISODES]).items()
    ]


def luck_shares(rows: Mapping[str, Sequence[Row]]) -> list[LuckShare]:
    """Return the luck share of each regime and reward; a share is None where the reward never varied."""
    shares = []
    for regime, tables in _by_regime(rows.get(LUCK_SHARE, ())).items():
        measured = {row["target"]: row for row in summaries.luck_share_summary({}, tables, "model")}
        tasks = len({row["task"] for row in tables})
        for target in TARGETS:
            row = measured.get(target, {})
            ends = (_plain(row.get("interval_low")), _plain(row.get("interval_high")))
            share, pooled = row.get("luck_share"), row.get("luck_share_pooled")
            defined = row.get("tasks_defined", 0)
            shares.append(LuckShare(regime, target, share, pooled, *ends, summaries.LEVEL, tasks, defined))
    return shares


def _files(identity: Mapping[str, Any], rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, bytes]]:
    """Return Parquet files by table and name: one a regime for what was played, one for what follows."""
    seed, model = int(identity["seed"]), str(identity["model"])
    played = {
        table: {
            f"{table}/{regime}.parquet": arrow.parquet_bytes(
                table, arrow.to_arrow(schema.TABLES[table], part)
            )
            for regime, part in sorted(_by_regime(rows.get(table, ())).items())
        }
        for table in (EPISODES, LUCK_SHARE)
    }
    tables = _by_regime(rows.get(LUCK_SHARE, ()))
    derived: dict[str, list[Row]] = {"runs": [], "evaluations": [], "luck_share_summary": []}
    for regime, part in _by_regime(rows[EPISODES]).items():
        diagnosed = tables.get(regime, [])
        run = {"run_id": regime, "condition": regime, "arm": ARM, "seed": seed}
        derived["runs"].append(_run_row(run, identity, part, diagnosed))
        played_here = arrow.to_arrow(row_tables.EPISODES, [row | {"run_id": regime} for row in part])
        derived["evaluations"] += summaries.evaluations(run, summaries.count_episodes(regime, played_here))
        derived["luck_share_summary"] += summaries.luck_share_summary(run, diagnosed, model)
    derived["schedules"] = assemble.schedules(
        content for files in played.values() for content in files.values()
    )
    shared = writer.rows_files({table: part for table, part in derived.items() if part})
    return {table: files for table, files in (played | shared).items() if files}


def _run_row(run: Row, identity: Mapping[str, Any], episodes: Sequence[Row], diagnosed: Sequence[Row]) -> Row:
    regime = REGIMES[run["condition"]]
    samples = sum(len(row["true_successes"]) for row in diagnosed)
    return {
        **run,
        # It enters no decision: of the words for a role, the one that says so.
        "role": "replication",
        "fault_rate": Decimal(str(regime.fault_rate)),
        "flip_rate": Decimal(str(regime.flip_rate)),
        "episodes": len(episodes) + samples,
        "status": "COMPLETE",
        "specification": canonical(dict(identity)),
    }


def _by_regime(rows: Iterable[Row]) -> dict[str, list[Any]]:
    regimes: dict[str, list[Any]] = {}
    for row in rows:
        regimes.setdefault(row["regime"], []).append(row)
    return regimes


def _measured(rows: Sequence[Row]) -> dict[str, Measure]:
    import numpy as np

    numbers = sorted({row["task"] for row in rows})
    at = {task: column for column, task in enumerate(numbers)}
    sums = np.zeros((len(MEASURES) + 1, len(numbers)))
    for row in rows:
        exposed = any(row[fault] for fault in row_tables.FAULTS)
        sums[:, at[row["task"]]] += (row["true_success"], row["observed_reward"], row["calls"], exposed, 1)

    def means(counts: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        totals = counts @ sums.T
        return {name: totals[:, column] / totals[:, -1] for column, name in enumerate(MEASURES)}

    plain = {name: float(value[0]) for name, value in means(np.ones((1, len(numbers)))).items()}
    if len(numbers) < taskwise.SMALLEST_SAMPLE:
        return {name: Measure(value, None, None) for name, value in plain.items()}
    uncertain = task_uncertainties(
        means, len(numbers), level=summaries.LEVEL, resamples=summaries.RESAMPLES, rng_seed=summaries.RNG_SEED
    )
    return {name: Measure(value, uncertain[name].low, uncertain[name].high) for name, value in plain.items()}


def _plain(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
