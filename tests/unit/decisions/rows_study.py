"""A study with episode rows, written to a folder: small in tests, as large as wanted in a measurement."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import toolkit
from tests.unit.decisions.study import RULES
from toolkit.decisions.case import Case
from toolkit.registers.arrow import arrow_schema, row_sha256, to_arrow
from toolkit.registers.manifest import FileEntry, Manifest, RegistrationRef, TableEntry, write_manifest
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.study import Study, open_study

REGISTRATION = ("small", "0" * 64)
REF = RegistrationRef(*REGISTRATION, {})
# The small registration, its interval resampled as studies do.
ROW_RULES = RULES.replace(
    'resampled = ["seed pairs"]', 'resampled = ["seed pairs", "tasks with all their schedules"]'
)
# What a study of the toolkit does not say of its evaluations.
UNTOLD = (
    *("score", "missing", "excluded", "tokens", "cost"),
    *("tasks", "episodes_per_task", "task_set"),
)


@dataclass(frozen=True)
class Evaluation:
    """An evaluation that every run has."""

    phase: str
    pool: str
    regime: str
    steps: tuple[int, ...]
    tasks: int
    schedules: int


@dataclass(frozen=True)
class Run:
    """A run, by its place in the matrix."""

    condition: str
    arm: str
    seed: int
    facts: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.condition}-{self.arm}-{self.seed}"


VALIDATION = Evaluation("periodic", "validation", "clean", (0, 20), 5, 2)
SMALL_RUNS = tuple(Run("X", arm, seed, {}) for arm in ("independent", "paired") for seed in (0, 1))


class AsStored:
    """A study whose summaries are taken as they are: what deciding does with them is tested on its own."""

    def __init__(self, study: Study) -> None:
        self.name, self.is_summary, self.origin = study.name, study.is_summary, study.origin
        self.has, self.rows, self.success_counts = study.has, study.rows, study.success_counts
        self.hashed, self.hashed_rows = study.hashed, study.hashed_rows

    def derive(self, table: str, names: Collection[str]) -> None:
        """Take them as they are."""


def episodes_of(run: Run, evaluations: Sequence[Evaluation]) -> pa.Table:
    """Return a run's episodes; tasks and seeds differ in difficulty, as they do in a study."""
    parts = []
    for e in sorted(evaluations, key=lambda e: (e.phase, e.regime)):
        step, task, schedule = (
            grid.ravel()
            for grid in np.meshgrid(e.steps, np.arange(e.tasks), np.arange(e.schedules), indexing="ij")
        )
        shared = np.random.default_rng([0, len(e.regime), e.tasks])
        ease, seeds = shared.uniform(0.2, 0.8, e.tasks), shared.integers(0, 2**63, (e.tasks, e.schedules))
        own = np.random.default_rng([0, *run.id.encode(), *e.regime.encode(), e.tasks])
        chance = ease[task] + 0.1 * own.standard_normal() + 0.002 * step
        success = own.random(len(step)) < chance
        facts = {"run_id": run.id, "phase": e.phase, "pool": e.pool, "regime": e.regime}
        columns: dict[str, NDArray[Any]] = {
            **{name: np.full(len(step), value) for name, value in facts.items()},
            "step": step,
            "task": task,
            "schedule": schedule,
            "schedule_seed": seeds[task, schedule],
            "true_success": success,
            "observed_reward": success,
            "calls": np.full(len(step), 5),
            "ended": np.full(len(step), "finished"),
            "world_changed": success,
        }
        parts.append(_table(columns, len(step)))
    return pa.concat_tables(parts)


def write_rows_study(
    folder: Path,
    runs: Sequence[Run] = SMALL_RUNS,
    evaluations: Sequence[Evaluation] = (VALIDATION,),
    *,
    episodes: Mapping[str, pa.Table | None] | None = None,
    rows: Mapping[str, list[dict[str, Any]]] | None = None,
    registration: RegistrationRef = REF,
    statistics: bool = True,
) -> Study:
    """Write a study with episodes, one file a run, and the tables derived from them; open it.

    `episodes` replaces a run's made episodes; None leaves its file out. `rows` replaces derived tables, or
    adds others.
    """
    made = {run.id: episodes_of(run, evaluations) for run in runs}
    derived = {
        "runs": [_run_row(run) | {"episodes": made[run.id].num_rows} for run in runs],
        "evaluations": [row for run in runs for row in _evaluation_rows(run, made[run.id])],
        **(rows or {}),
    }
    tables = {name: to_arrow(TABLES[name], own) for name, own in derived.items()}
    files = {name: {f"{name}/train-00000-of-00001.parquet": table} for name, table in tables.items()}
    played = {**made, **(episodes or {})}
    files["episodes"] = {
        f"episodes/{run}.parquet": played[run] for run in sorted(played) if played[run] is not None
    }
    entries, tables_of = {}, {}
    for name, parts in files.items():
        for file, part in parts.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(part, path, compression="zstd", store_schema=False, write_statistics=statistics)
            content = path.read_bytes()
            entries[file] = FileEntry(hashlib.sha256(content).hexdigest(), len(content), part.num_rows)
        whole = pa.concat_tables(parts.values(), promote_options="default")
        known = EPISODES if name == EPISODES.name else TABLES[name].narrowed(whole.column_names)
        tables_of[name] = TableEntry(whole.num_rows, row_sha256(whole), known.column_names, tuple(parts))
    facts = (SCHEMA_VERSION, toolkit.__version__, registration, {}, tables_of, entries)
    write_manifest(folder, Manifest("rows", "rows", *facts))
    return open_study(folder)


def evaluation_rows(runs: Sequence[Run], evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """Return the rows of `evaluations` that the made episodes give."""
    return [row for run in runs for row in _evaluation_rows(run, episodes_of(run, evaluations))]


def _table(columns: Mapping[str, Any], rows: int) -> pa.Table:
    schema = arrow_schema(EPISODES)
    zeros = np.zeros(rows, dtype=int)
    return pa.table([pa.array(columns.get(f.name, zeros)).cast(f.type) for f in schema], schema=schema)


def _run_row(run: Run) -> dict[str, Any]:
    texts = dict.fromkeys(("provider", "recipe_sha256"), "here")
    texts |= {"scale_rewards": "group", "loss_type": "dapo", "status": "COMPLETE", "role": "primary"}
    row = {column.name: None if column.nullable else 0 for column in TABLES["runs"].columns}
    cell = {"run_id": run.id, "condition": run.condition, "arm": run.arm, "seed": run.seed}
    return {**row, **texts, **cell, **run.facts}


def _evaluation_rows(run: Run, episodes: pa.Table) -> list[dict[str, Any]]:
    keys = ["phase", "pool", "regime", "step"]
    at = episodes.column_names.index("true_success")
    counted = episodes.set_column(at, "successes", episodes["true_success"].cast(pa.int32()))
    sums = counted.group_by(keys).aggregate([([], "count_all"), ("successes", "sum")]).to_pylist()
    empty = dict.fromkeys((n for n in TABLES["evaluations"].column_names if n not in UNTOLD), 0)
    cell = {"run_id": run.id, "condition": run.condition, "arm": run.arm, "seed": run.seed}
    rows = []
    for row in sums:
        won = dict.fromkeys(("successes", "observed_successes"), row["successes_sum"])
        counts = {"episodes": row["count_all"], "recovered": None, "finished": row["count_all"], **won}
        counts["calls"] = 5 * row["count_all"]
        rows.append({**empty, **cell, **{key: row[key] for key in keys}, **counts})
    return rows


def registered_study(
    folder: Path, case: Case, rows: Mapping[str, list[dict[str, Any]]] | None = None
) -> Study:
    """Write a study of a shipped registration that has the runs of one of its rules, and no others."""
    facts: dict[str, Any] = {"steps": 100, "group_size": 8, "prompts_per_step": 24, "training_groups": 2400}
    facts |= {"launched_at": datetime(2026, 9, 10, tzinfo=UTC)}  # after the registration's amendment
    fixed = {**facts, "training_rollouts": 19200, "fault_rate": Decimal("0.25"), "flip_rate": Decimal(0)}
    runs = [Run("C2", arm, seed, fixed) for arm in ("independent", "paired") for seed in (0, 1, 2)]
    evaluation = Evaluation("periodic", "validation", "faults_p025", (0, 20, 40, 60, 80, 100), 64, 2)
    frozen = case.study.manifest.registration
    return write_rows_study(folder, runs, [evaluation], rows=rows, registration=frozen)
