"""The BFCL adaptation, from its Parquet files alone: nothing here calls what played or decided it."""

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.conftest import CHECKOUT, Result
from tests.golden.test_coupled import REGISTERS, differences, episodes

CONDITIONS = {"turns": 182, "scenarios": 48}


def decided(toolkit: Any, rule: str) -> dict[str, Any]:
    result: Result = toolkit("decide", rule, "--study", "bfcl", "--json")
    (found,) = result.json()
    return dict(found)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_differences_and_verdicts_are_those_of_the_episodes(toolkit: Any, condition: str) -> None:
    found = differences(condition, "bfcl")
    helped, same = decided(toolkit, f"H6_{condition}"), decided(toolkit, f"Q_{condition}")
    assert helped["estimate"]["mean"] == pytest.approx(found.mean(), abs=1e-5)
    assert list(helped["estimate"]["by_seed"].values()) == pytest.approx(found.tolist(), abs=1e-5)
    positive = int((found > 1e-9).sum())
    assert (helped["verdict"] == "pass") == (positive >= 15 and float(helped["interval"]["low"]) > 0)
    low, high = (float(same["interval"][end]) for end in ("low", "high"))
    assert (same["verdict"] == "pass") == (low >= -0.01 and high <= 0.01)
    within = decided(toolkit, f"P10_{condition}")["verdict"]
    assert (within == "met") == (0.01 <= found.mean() <= 0.05)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_intervals_are_those_of_a_bootstrap_of_seeds_and_tasks(toolkit: Any, condition: str) -> None:
    rows = episodes("bfcl").filter(pl.col("condition") == condition)
    weight = pl.when(pl.col("step").is_in([0, 100])).then(0.1).otherwise(0.2)
    sign = pl.when(pl.col("arm") == "paired").then(1.0).otherwise(-1.0)
    by_cell = (
        rows.group_by("seed", "task")
        .agg((pl.col("true_success") * weight * sign).sum() / 2)
        .sort("seed", "task")["true_success"]
        .to_numpy()
        .reshape(20, CONDITIONS[condition])
    )
    rng, drawn = np.random.default_rng(0), []
    for _ in range(4000):
        seeds = rng.integers(20, size=20)
        tasks = rng.integers(by_cell.shape[1], size=by_cell.shape[1])
        drawn.append(by_cell[seeds][:, tasks].mean())
    interval = decided(toolkit, f"H6_{condition}")["interval"]
    ends = (float(interval["low"]), float(interval["high"]))
    assert np.quantile(drawn, [0.025, 0.975]) == pytest.approx(ends, abs=3e-4)


def test_at_step_0_all_runs_of_a_condition_have_one_set_of_episodes() -> None:
    for condition, tasks in CONDITIONS.items():
        start = episodes("bfcl").filter((pl.col("condition") == condition) & (pl.col("step") == 0))
        outcomes = start.group_by("task", "schedule").agg(pl.col("true_success").n_unique())
        assert (outcomes.height, outcomes["true_success"].max()) == (2 * tasks, 1)


def test_pools_are_registered_and_hold_no_text_of_the_benchmark() -> None:
    registered = (CHECKOUT / "prereg/bfcl/rules.toml").read_text(encoding="utf-8")
    rows = pl.read_parquet(REGISTERS / "bfcl" / "task_pools" / "*.parquet").sort("pool", "index")
    assert all(re.fullmatch(r"multi_turn_base_[\d.]+, [0-9a-f]{64}", prompt) for prompt in rows["prompt"])
    for pool in ("train", "validation"):
        assert re.search(rf'^{pool} = "[0-9a-f]{{64}}"$', registered, re.MULTILINE)
