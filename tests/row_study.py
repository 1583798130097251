"""A made-up study of rows with the skew of a real one: many, small, and mostly zero."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from toolkit.files import write_all
from toolkit.registers.arrow import arrow_schema, parquet_bytes
from toolkit.registers.cards import Config, config_of, dataset_card
from toolkit.registers.manifest import Manifest, RegistrationRef
from toolkit.registers.row_tables import FAULTS, OF_IMPORTS, RECOVERIES
from toolkit.registers.schema import TABLES
from toolkit.registers.writer import seal_study

REF = RegistrationRef("made-up", "0" * 64, {})
CARD = "---\n{{configs}}\n{{dataset_info}}\n---\n\n{{tables}}\n"
# Faults a call, at about those of the reference agent at p = 0.25; what each recovery follows.
SHARES = dict(zip(FAULTS, (0.08, 0.03, 0.015, 0.015, 0.01, 0.0, 0.0), strict=True))
CAUSES = dict(zip(RECOVERIES, ("transient", "rate_limit", "stale_read", "truncation"), strict=True))
STEPS = tuple(range(0, 301, 20))
# What only the runs of language models have, or only studies that others ran.
UNTOLD = (
    *OF_IMPORTS,
    *("recipe_sha256", "tokens", "importance_weights"),
    *("stack", "accelerator", "processes", "kernels", "step_seconds", "generation_seconds"),
)


def run_ids(count: int) -> list[str]:
    return [f"c2-paired-s{number:03d}" for number in range(count)]


def runs(ids: Sequence[str]) -> pa.Table:
    """Return rows of `runs` as a study has them that rented nothing and paid nothing."""
    absent = dict.fromkeys(_schema("runs").names)
    rows = [
        {
            **absent,
            "run_id": run_id,
            "condition": "C2",
            "arm": "paired",
            "seed": seed,
            "role": "primary",
            "fault_rate": Decimal("0.25"),
            "flip_rate": Decimal(0),
            "scale_rewards": "group",
            "loss_type": "dapo",
            "steps": 300,
            "group_size": 8,
            "prompts_per_step": 8,
            "episodes": 5632,
            "training_groups": 2400,
            "training_rollouts": 19200,
            "status": "COMPLETE",
            "provider": "local",
        }
        for seed, run_id in enumerate(ids)
    ]
    return pa.Table.from_pylist(rows, schema=_schema("runs"))


def episodes(run_id: str, seed: int, steps: Sequence[int] = STEPS, tasks: int = 64) -> pa.Table:
    """Return a run's episodes: a final evaluation on six times the tasks, and periodic ones."""
    evaluations = [("final", "test", steps[-1], 6 * tasks)]
    evaluations += [("periodic", "validation", step, tasks) for step in steps]
    return pa.concat_tables([_evaluation(run_id, seed, *evaluation) for evaluation in evaluations])


def _evaluation(run_id: str, seed: int, phase: str, pool: str, step: int, tasks: int) -> pa.Table:
    rng, n = np.random.default_rng([seed, step, tasks]), 4 * tasks
    success, calls = rng.random(n) < 0.55 + step / 1000, 3 + rng.binomial(10, 0.6, n)
    faults = {name: rng.binomial(calls, share) for name, share in SHARES.items()}
    return _table(
        "episodes",
        run_id=[run_id] * n,
        phase=[phase] * n,
        pool=[pool] * n,
        regime=["faults_p025"] * n,
        step=np.full(n, step),
        task=np.repeat(np.arange(tasks), 4),
        schedule=np.tile(np.arange(4), tasks),
        schedule_seed=_seeds(np.random.default_rng(tasks), n),
        true_success=success,
        observed_reward=success,
        calls=calls,
        ended=np.where(rng.random(n) < 0.95, "finished", "budget_exceeded"),
        world_changed=success | (rng.random(n) < 0.5),
        **faults,
        **{f"{code}_due": faults[cause] for code, cause in CAUSES.items()},
        **{f"{code}_made": rng.binomial(faults[cause], 0.6) for code, cause in CAUSES.items()},
    )


def groups(run_id: str, seed: int, steps: int = 300, prompts: int = 8) -> pa.Table:
    """Return a run's training groups, with lists of eight."""
    rng, n = np.random.default_rng(seed), steps * prompts
    truths = rng.random((n, 8)) < rng.random((n, 1))
    mean, spread = truths.mean(1, keepdims=True), truths.std(1, keepdims=True)
    return _table(
        "groups",
        run_id=[run_id] * n,
        step=np.repeat(np.arange(1, steps + 1), prompts),
        position=np.tile(np.arange(prompts), steps),
        task=rng.integers(0, 2048, n),
        regime=["faults_p025"] * n,
        schedule_seeds=list(np.repeat(_seeds(rng, n)[:, None], 8, axis=1)),
        true_successes=list(truths),
        observed_rewards=list(truths),
        advantages=list((truths - mean) / (spread + 1e-4)),
        decisions=rng.integers(40, 100, n),
        exposed=rng.integers(0, 9, n),
        zero_variance=spread[:, 0] == 0,
        spurious=np.zeros(n, bool),
    )


def checkpoints(run_id: str, seed: int) -> pa.Table:
    """Return two checkpoints of a run; their parameters are a few, and one list is empty."""
    rng = np.random.default_rng(seed)
    return _table(
        "checkpoints",
        run_id=[run_id] * 2,
        step=[0, 20],
        parameters=list(rng.normal(size=(2, 5))),
        first_moment=[[], [0.1]],
        second_moment=list(rng.normal(size=(2, 5)) ** 2),
        sha256=["0" * 64, "1" * 64],
    )


def schedules(parts: Sequence[pa.Table]) -> pa.Table:
    """Return the schedules that some episodes met."""
    key = ("pool", "task", "schedule", "schedule_seed")
    met = sorted({tuple(row[name] for name in key) for part in parts for row in part.to_pylist()})
    return _table("schedules", **dict(zip(key, map(list, zip(*met, strict=True)), strict=True)))


def launch(run_id: str, wall_time: float) -> pa.Table:
    """Return the only launch of a run."""
    return _table(
        "launches",
        run_id=[run_id],
        attempt=[1],
        launched_at=[datetime(2026, 9, 8, tzinfo=UTC)],
        ended_at=[datetime(2026, 9, 9, tzinfo=UTC)],
        from_step=[0],
        wall_time_s=[wall_time],
        peak_memory_mb=[100.0],
        python=["3.11.7"],
        platform=["Linux x86_64"],
        code_version=["0.1.0"],
        specification_sha256=["0" * 64],
    )


def tables(ids: Sequence[str]) -> dict[str, list[pa.Table]]:
    """Return the parts of every table of a small study: a part a run, but one for the table of runs."""
    listed = list(enumerate(ids))
    played = [episodes(run_id, seed, (0, 20), 2) for seed, run_id in listed]
    trained = [groups(run_id, seed, 3, 2) for seed, run_id in listed]
    sizes = [part.num_rows + 8 * of_run.num_rows for part, of_run in zip(played, trained, strict=True)]
    return {
        "runs": [with_column(runs(ids), "episodes", sizes)],
        "episodes": played,
        "groups": trained,
        "checkpoints": [checkpoints(run_id, seed) for seed, run_id in listed],
    }


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    """Return a table with other values in a column: of its type, or an array of another."""
    position = table.column_names.index(name)
    field = table.schema.field(position)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return table.set_column(position, field.with_type(values.type).with_nullable(True), values)
    return table.set_column(position, field, pa.array(values, field.type))


def with_value(table: pa.Table, name: str, row: int, value: object) -> pa.Table:
    """Return a table with another value in one place."""
    values = table[name].to_pylist()
    values[row] = value
    return with_column(table, name, values)


def lay(folder: Path, parts: Mapping[str, Sequence[pa.Table]]) -> dict[str, list[str]]:
    """Write the files of tables, one a part, and return their names."""
    names = {name: [f"{name}/{part[0][0]}.parquet" for part in listed] for name, listed in parts.items()}
    for name, listed in parts.items():
        write_all(folder, {f: parquet_bytes(name, p) for f, p in zip(names[name], listed, strict=True)})
    return names


def seal(folder: Path, files: Mapping[str, Sequence[str]], study: str = "rows") -> Manifest:
    """Complete a study of files that lie in its folder."""
    card = dataset_card(CARD, [_config(folder, name, listed) for name, listed in files.items()])
    return seal_study(
        folder,
        study=study,
        evidence="rows",
        registration=REF,
        files=files,
        documents={"README.md": card.encode()},
    )


def _config(folder: Path, name: str, files: Sequence[str]) -> Config:
    try:
        return config_of(TABLES[name], {file: (folder / file).read_bytes() for file in files})
    except (OSError, pa.ArrowInvalid):  # a defect, which sealing is to find
        return Config(TABLES[name], (), 0)


def _seeds(rng: np.random.Generator, n: int) -> Any:
    return rng.integers(0, 2**64, n, dtype=np.uint64)


def _schema(name: str) -> pa.Schema:
    return pa.schema([field for field in arrow_schema(TABLES[name]) if field.name not in UNTOLD])


def _table(name: str, **columns: Any) -> pa.Table:
    schema = _schema(name)
    return pa.Table.from_arrays(
        [pa.array(columns[field.name], field.type) for field in schema], schema=schema
    )
