"""Rows of a made-up study with the skew of a real one: many, small, and mostly zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from toolkit.registers.arrow import arrow_schema
from toolkit.registers.row_tables import FAULTS, RECOVERIES
from toolkit.registers.schema import TABLES

# Shares of the fault types among calls that may meet one, and of calls after which each recovery is due.
SHARES = dict(zip(FAULTS, (0.08, 0.03, 0.015, 0.015, 0.01, 0.0, 0.0), strict=True))
CAUSES = dict(zip(RECOVERIES, ("transient", "rate_limit", "stale_read", "truncation"), strict=True))


def run_ids(runs: int) -> list[str]:
    return [f"c2-paired-s{number:03d}" for number in range(runs)]


def run_row(run_id: str, seed: int) -> dict[str, Any]:
    """Return a row of `runs` as an embedded study has it: no accelerator, no launch."""
    from decimal import Decimal

    nothing = dict.fromkeys(c.name for c in TABLES["runs"].columns)
    return {
        **nothing,
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


def runs(count: int) -> pa.Table:
    rows = [run_row(run_id, seed) for seed, run_id in enumerate(run_ids(count))]
    return pa.Table.from_pylist(rows, schema=arrow_schema(TABLES["runs"]))


def episodes(run_id: str, seed: int, steps: tuple[int, ...] = tuple(range(0, 301, 20))) -> pa.Table:
    """Return episodes of a run: a final evaluation on 384 tasks and periodic ones on 64, 4 schedules each."""
    sizes = [("final", "test", steps[-1], 384), *(("periodic", "validation", step, 64) for step in steps)]
    parts = [_evaluation(run_id, seed, *size) for size in sizes]
    return pa.concat_tables(parts)


def _evaluation(run_id: str, seed: int, phase: str, pool: str, step: int, tasks: int) -> pa.Table:
    rng = np.random.default_rng([seed, step, tasks])
    n = tasks * 4
    success = rng.random(n) < 0.55 + step / 1000
    calls = rng.binomial(10, 0.6, n) + 3
    faults = {name: rng.binomial(calls, share) for name, share in SHARES.items()}
    columns: dict[str, Any] = {
        "run_id": [run_id] * n,
        "phase": [phase] * n,
        "pool": [pool] * n,
        "regime": ["faults_p025"] * n,
        "step": np.full(n, step),
        "task": np.repeat(np.arange(tasks), 4),
        "schedule": np.tile(np.arange(4), tasks),
        "schedule_seed": np.random.default_rng(tasks).integers(0, 2**64, n, dtype=np.uint64),
        "true_success": success,
        "observed_reward": success,
        "calls": calls,
        "ended": np.where(rng.random(n) < 0.9, "finished", "budget_exceeded"),
        "world_changed": success | (rng.random(n) < 0.5),
        **faults,
    }
    for code, cause in CAUSES.items():
        columns[f"{code}_due"] = faults[cause]
        columns[f"{code}_made"] = rng.binomial(faults[cause], 0.6)
    return _table("episodes", columns)


def groups(run_id: str, seed: int, steps: int = 300, prompts: int = 8) -> pa.Table:
    """Return training groups of a run, with lists of eight."""
    rng, n = np.random.default_rng(seed), steps * prompts
    truths = rng.random((n, 8)) < rng.random((n, 1))
    mean, spread = truths.mean(1, keepdims=True), truths.std(1, keepdims=True)
    columns = {
        "run_id": [run_id] * n,
        "step": np.repeat(np.arange(1, steps + 1), prompts),
        "position": np.tile(np.arange(prompts), steps),
        "task": rng.integers(0, 2048, n),
        "regime": ["faults_p025"] * n,
        "schedule_seeds": list(np.repeat(rng.integers(0, 2**64, (n, 1), dtype=np.uint64), 8, axis=1)),
        "true_successes": list(truths),
        "observed_rewards": list(truths),
        "advantages": list((truths - mean) / (spread + 1e-4)),
        "decisions": rng.integers(40, 100, n),
        "exposed": rng.integers(0, 9, n),
        "zero_variance": spread[:, 0] == 0,
        "spurious": np.zeros(n, bool),
    }
    return _table("groups", columns)


def _table(name: str, columns: dict[str, Any]) -> pa.Table:
    schema = arrow_schema(TABLES[name])
    return pa.Table.from_arrays(
        [pa.array(columns[field.name], field.type) for field in schema], schema=schema
    )
