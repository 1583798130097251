"""The coupled companion, from its Parquet files alone: nothing here calls what evaluated or decided it."""

import json
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.conftest import CHECKOUT, Result

REGISTERS = CHECKOUT / "registers"
CONDITIONS = ("C2", "C4", "C2o")
SEEDS = range(100, 120)
WEIGHTS = {0: 0.1, 20: 0.2, 40: 0.2, 60: 0.2, 80: 0.2, 100: 0.1}


@cache
def episodes(study: str = "coupled") -> pl.DataFrame:
    """Return every episode of a study with its run's place."""
    rows = pl.read_parquet(REGISTERS / study / "episodes" / "*.parquet")
    runs = pl.read_parquet(REGISTERS / study / "runs" / "*.parquet")
    return rows.join(runs.select("run_id", "condition", "arm", "seed"), on="run_id")


def differences(condition: str, study: str = "coupled") -> np.ndarray[Any, Any]:
    """Return the AUC of the paired arm minus that of the independent arm, by seed."""
    levels = (
        episodes(study)
        .filter(pl.col("condition") == condition)
        .group_by("arm", "seed", "step")
        .agg(pl.col("true_success").mean())
        .with_columns(pl.col("step").replace_strict(WEIGHTS, return_dtype=pl.Float64).alias("weight"))
        .group_by("arm", "seed")
        .agg((pl.col("true_success") * pl.col("weight")).sum().alias("auc"))
    )
    by_arm = {
        arm: dict(levels.filter(pl.col("arm") == arm).select("seed", "auc").iter_rows())
        for arm in ("paired", "independent")
    }
    return np.array([by_arm["paired"][seed] - by_arm["independent"][seed] for seed in SEEDS])


@cache
def decisions() -> dict[str, dict[str, Any]]:
    rows = pl.read_parquet(REGISTERS / "coupled" / "decisions" / "*.parquet").to_dicts()
    return {row["rule"]: row for row in rows}


@pytest.mark.parametrize(("rule", "condition"), [("D1", "C2"), ("D2", "C2o"), ("Q2", "C4")])
def test_a_difference_is_that_of_the_episodes(toolkit: Any, rule: str, condition: str) -> None:
    result: Result = toolkit("decide", rule, "--study", "coupled", "--json")
    (decided,) = result.json()
    found = differences(condition)
    assert decided["estimate"]["mean"] == pytest.approx(found.mean(), abs=1e-5)
    assert list(decided["estimate"]["by_seed"].values()) == pytest.approx(found.tolist(), abs=1e-5)
    if rule.startswith("D"):
        assert (decided["verdict"] == "pass") == (
            int((found < -1e-9).sum()) >= 15 and float(decided["interval"]["high"]) < 0
        )


@pytest.mark.parametrize(("rule", "condition"), [*zip(("V1", "V2", "V3"), CONDITIONS, strict=True)])
def test_a_ratio_is_that_of_the_variances(toolkit: Any, rule: str, condition: str) -> None:
    result: Result = toolkit("decide", rule, "--study", "coupled", "--json")
    (decided,) = result.json()
    own, shared = (differences(name).var(ddof=1) for name in (f"{condition}-own", condition))
    assert float(decided["criteria"][0]["decimal"]) == pytest.approx(own / shared, rel=1e-4)
    assert decided["verdict"] == decisions()[rule]["verdict"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_at_step_0_all_forty_runs_have_one_set_of_episodes(condition: str) -> None:
    """One policy and one key: every column of every episode is the same, and with own samples it is not."""
    place = ["task", "schedule"]
    for name, alike in ((condition, True), (f"{condition}-own", False)):
        start = episodes().filter((pl.col("condition") == name) & (pl.col("step") == 0))
        assert start["run_id"].n_unique() == 40
        said = start.drop("run_id", "arm", "seed").unique()
        assert (len(said) == len(said.unique(place))) == alike


def test_trained_policies_differ_in_few_shared_episodes_and_in_many_of_their_own() -> None:
    differing = {}
    for name in ("C2", "C2-own"):
        last = episodes().filter((pl.col("condition") == name) & (pl.col("step") == 100))
        wide = last.pivot(on="arm", index=["seed", "task", "schedule"], values="true_success")
        differing[name] = (wide["paired"] != wide["independent"]).mean()
    assert differing["C2"] < 0.03
    assert differing["C2-own"] > 0.1


def test_the_checkpoints_are_those_of_the_other_study_and_have_the_registered_digests() -> None:
    registered = (CHECKOUT / "prereg/coupled/rules.toml").read_text(encoding="utf-8")
    runs = pl.read_parquet(REGISTERS / "coupled" / "runs" / "*.parquet")
    rows = pl.read_parquet(REGISTERS / "coupled" / "checkpoints" / "*.parquet").sort("run_id", "step")
    source = pl.read_parquet(REGISTERS / "embedded" / "checkpoints" / "*.parquet").sort("run_id", "step")
    for run_id, text in runs.select("run_id", "specification").iter_rows():
        named = json.loads(text)["checkpoints"]
        mine = rows.filter(pl.col("run_id") == run_id).drop("run_id")
        assert mine.equals(source.filter(pl.col("run_id") == named["run"]).drop("run_id"))
        lines = "".join(f"{step} {digest}\n" for step, digest in mine.select("step", "sha256").iter_rows())
        assert sha256(lines.encode()).hexdigest() == named["sha256"]
        assert named["sha256"] in registered


def test_registers_take_under_16_megabytes() -> None:
    assert sum(path.stat().st_size for path in (REGISTERS / "coupled").rglob("*.parquet")) < 16e6
