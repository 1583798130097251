"""The map, from its Parquet files and its frozen text alone, beside what the toolkit decides on it."""

import tomllib
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.conftest import CHECKOUT

REGISTERS = CHECKOUT / "registers"
RULES = tomllib.loads((CHECKOUT / "prereg/map/rules.toml").read_text(encoding="utf-8"))
POINTS = RULES["pictures"]["map"]["points"]
CELLS = [point["statistic"].removeprefix("ratio_").replace("_", "-") for point in POINTS]
PREDICTED = {
    name: np.array([float(point["predicted"][at]) for point in POINTS])
    for at, name in enumerate(("drift", "trace"))
}
WEIGHTS = {0: 0.1, 20: 0.2, 40: 0.2, 60: 0.2, 80: 0.2, 100: 0.1}
SLOWER = [name for name in RULES["rules"] if name.startswith("slower_")]
FASTER = [name for name in RULES["rules"] if name.startswith("faster_")]
SAME = [name for name in RULES["rules"] if name.startswith("same_")]


@cache
def levels() -> pl.DataFrame:
    """Return success by cell, arm, seed and step."""
    rows = pl.scan_parquet(REGISTERS / "map" / "episodes" / "*.parquet")
    runs = pl.scan_parquet(REGISTERS / "map" / "runs" / "*.parquet")
    found = rows.join(runs.select("run_id", "condition", "arm", "seed"), on="run_id")
    places = ("condition", "arm", "seed", "step")
    return found.group_by(places).agg(pl.col("true_success").mean()).sort(places).collect()


@cache
def areas(cell: str, arm: str) -> np.ndarray[Any, Any]:
    """Return the area under each seed's curve."""
    of_cell = levels().filter((pl.col("condition") == cell) & (pl.col("arm") == arm))
    weighted = pl.col("true_success") * pl.col("step").replace_strict(WEIGHTS, return_dtype=pl.Float64)
    by_seed = of_cell.group_by("seed").agg(weighted.sum().alias("area")).sort("seed")
    assert by_seed["seed"].to_list() == [*range(24)]
    return by_seed["area"].to_numpy()


def start(cell: str) -> float:
    """Return success at step 0, which is the same in every run of a cell."""
    (level,) = levels().filter((pl.col("condition") == cell) & (pl.col("step") == 0))["true_success"].unique()
    return float(level)


def seen(which: slice | np.ndarray[Any, Any] = slice(None)) -> np.ndarray[Any, Any]:
    """Return the ratio of gains of every cell, of some seeds."""
    gains = {
        arm: [areas(cell, arm)[which].mean() - start(cell) for cell in CELLS]
        for arm in ("paired", "independent")
    }
    return np.array(gains["paired"]) / np.array(gains["independent"])


def differences(rule: str) -> np.ndarray[Any, Any]:
    cell = rule.partition("_")[2].replace("_", "-")
    return areas(cell, "paired") - areas(cell, "independent")


def tau(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    pairs = list(combinations(range(len(x)), 2))
    return sum(float(np.sign((x[i] - x[j]) * (y[i] - y[j]))) for i, j in pairs) / len(pairs)


@pytest.fixture(scope="module")
def decided() -> dict[str, Any]:
    from toolkit import api

    case = api.open_case(api.open_study("map"))
    return {decision.rule: decision.as_dict() for decision in case.decide_all()}


@pytest.mark.parametrize("rule", [*SLOWER, *FASTER])
def test_a_cell_is_slower_or_faster_by_pairs_and_by_student_s_interval(decided, rule) -> None:
    sign = -1 if rule in SLOWER else 1
    found = differences(rule)
    low, high = stats.ttest_1samp(found, 0).confidence_interval(0.95)
    holds = int((sign * found > 1e-9).sum()) >= 18 and (high < 0 if sign < 0 else low > 0)
    assert decided[rule]["verdict"] == ("pass" if holds else "miss")
    assert float(decided[rule]["interval"]["low"]) == pytest.approx(low, abs=1e-6)
    assert float(decided[rule]["interval"]["high"]) == pytest.approx(high, abs=1e-6)


@pytest.mark.parametrize("rule", SAME)
def test_a_cell_is_the_same_within_the_margin(decided: dict[str, Any], rule: str) -> None:
    low, high = stats.ttest_1samp(differences(rule), 0).confidence_interval(0.90)
    assert decided[rule]["verdict"] == ("pass" if low >= -0.005 and high <= 0.005 else "miss")


def test_the_regression_and_the_ranks_are_those_of_the_cells(decided: dict[str, Any]) -> None:
    slope = stats.linregress(PREDICTED["drift"], seen()).slope
    assert float(decided["regression"]["estimate"]["mean"]) == pytest.approx(slope, rel=1e-4)
    beyond = tau(seen(), PREDICTED["drift"]) - tau(seen(), PREDICTED["trace"])
    assert float(decided["ranks"]["estimate"]["mean"]) == pytest.approx(beyond, abs=1e-4)


def test_intervals_over_seeds_are_about_those_of_other_draws(decided: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    draws = [seen(rng.integers(0, 24, 24)) for _ in range(200)]
    slopes = [stats.linregress(PREDICTED["drift"], drawn).slope for drawn in draws]
    low, high = np.percentile(slopes, (2.5, 97.5))
    interval = decided["regression"]["interval"]
    width = float(interval["high"]) - float(interval["low"])
    assert abs(float(interval["low"]) - low) < 0.15 * width
    assert abs(float(interval["high"]) - high) < 0.15 * width


def test_every_run_of_a_cell_starts_from_the_same_episodes() -> None:
    for cell in CELLS:
        assert 0 < start(cell) < 1


def test_equal_variance_is_two_paired_groups_against_three_independent_ones(decided: dict[str, Any]) -> None:
    difference = areas("faults-b2", "paired") - areas("faults-b3", "independent")
    assert float(decided["equal_variance"]["estimate"]["mean"]) == pytest.approx(difference.mean(), abs=1e-5)


def test_both_registers_take_under_40_megabytes() -> None:
    files = [path for name in ("coupled", "map") for path in (REGISTERS / name).rglob("*.parquet")]
    assert sum(path.stat().st_size for path in files) < 40e6
