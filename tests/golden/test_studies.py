"""The studies that are shipped: what their registers hold, and what was decided on them.

Levels, differences and intervals come from the Parquet files and the frozen texts alone.
"""

import json
import tomllib
from collections import Counter
from functools import cache
from hashlib import sha256
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.conftest import CHECKOUT, Toolkit
from tests.golden import measure_levels
from toolkit import cases
from toolkit.registers.study import Study, open_study

REGISTERS = CHECKOUT / "registers"
WEIGHTS = {0: 0.1, 20: 0.2, 40: 0.2, 60: 0.2, 80: 0.2, 100: 0.1}
Array = np.ndarray[Any, Any]


class Shipped(NamedTuple):
    """What is expected of a study: its rules, its runs, and pairs of runs that differ in the design alone."""

    rules: int
    roles: dict[str, int]
    pairs: tuple[str, ...]


STUDIES = {
    "embedded": Shipped(23 + 4, {"primary": 156, "reference": 2}, ("c2-{}-s2",)),
    "coupled": Shipped(9, {"primary": 240}, ()),
    "bfcl": Shipped(7, {"primary": 80}, ()),
    "map": Shipped(20, {"primary": 984}, ()),
    "small-lm": Shipped(9, {"primary": 40, "reference": 3}, ("c2-{}-s0", "c2-{}-s11", "c4-{}-s7")),
    "worlds": Shipped(6, {"primary": 12}, ()),
    "tiny-lm": Shipped(7, {"primary": 8}, ("c2-{}-s0", "c2-{}-s1", "c4-{}-s0", "c4-{}-s1")),
}
STARTS = {"small-lm": "small-soft", "tiny-lm": "small"}
PAIRS = [(name, pair) for name, study in STUDIES.items() for pair in study.pairs]


@cache
def opened(name: str) -> Study:
    return open_study(REGISTERS / name)


def table(study: str, name: str) -> pl.LazyFrame:
    return pl.scan_parquet(REGISTERS / study / name / "*.parquet")


@cache
def decided(study: str) -> dict[str, dict[str, Any]]:
    """Return the decisions that a study stores, by rule; whoever decides on it holds its own against them."""
    return {row["rule"]: row for row in table(study, "decisions").collect().to_dicts()}


def frozen(study: str) -> str:
    """Return the rules that a study was registered with."""
    return (CHECKOUT / "prereg" / study / "rules.toml").read_text(encoding="utf-8")


def episodes(study: str, condition: str | None = None, step: int | None = None) -> pl.LazyFrame:
    """Return episodes with their run's place."""
    runs = table(study, "runs").select("run_id", "condition", "arm", "seed")
    rows = table(study, "episodes").join(runs, on="run_id")
    given = {name: value for name, value in (("condition", condition), ("step", step)) if value is not None}
    return rows.filter(**given)


@cache
def levels(study: str) -> pl.DataFrame:
    """Return success by condition, arm, seed and step."""
    place = ("condition", "arm", "seed", "step")
    return episodes(study).group_by(place).agg(pl.col("true_success").mean()).sort(place).collect()


@cache
def areas(study: str, condition: str, arm: str) -> Array:
    """Return the area under each seed's curve."""
    weighted = pl.col("true_success") * pl.col("step").replace_strict(WEIGHTS, return_dtype=pl.Float64)
    of_arm = levels(study).filter(condition=condition, arm=arm).group_by("seed", maintain_order=True)
    by_seed = of_arm.agg(weighted.sum().alias("area"))
    assert by_seed["seed"].to_list() == {"map": [*range(24)]}.get(study, [*range(100, 120)])
    return by_seed["area"].to_numpy()


def differences(study: str, condition: str) -> Array:
    """Return the AUC of the paired arm minus that of the independent arm, by seed."""
    return areas(study, condition, "paired") - areas(study, condition, "independent")


# ------------------------------------------------------------------------------------------- every study


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "tiny-lm" else pytest.mark.slow) for name in STUDIES],
)
def test_every_registered_rule_is_decided_as_stored(name: str) -> None:
    decisions = cases.open_case(opened(name)).decide_all()
    verdicts = {decision.rule: decision.verdict for decision in decisions}
    assert not {"not_run", "not_evaluable"} & {*verdicts.values()}
    assert len(verdicts) == STUDIES[name].rules
    assert {rule: verdicts[rule] for rule in decided(name)} == {
        rule: row["verdict"] for rule, row in decided(name).items()
    }


@pytest.mark.parametrize("name", STUDIES)
def test_the_matrix_was_played_whole_and_after_the_freeze(toolkit: Toolkit, name: str) -> None:
    runs = opened(name).rows("runs")
    assert {run["status"] for run in runs} == {"COMPLETE"}
    assert Counter(run["role"] for run in runs) == STUDIES[name].roles
    (document,) = toolkit("verify-prereg", name, "--json").json()
    assert (document["verdict"], document["standing"]) == ("verified", "demonstration")
    assert document["chronology"]["verdict"] == "runs_after_freeze"
    assert document["chronology"]["runs_after"] == len(runs)


@pytest.mark.slow
def test_the_card_shows_the_levels_as_measured() -> None:
    assert measure_levels.table(opened("embedded")) in measure_levels.CARD.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "runs"),
    [
        ("embedded", ["c0-clean-s1"]),
        ("map", ["faults-b1-independent-s1", "faults-resampled-paired-s3", "flips-b2-paired-s2"]),
    ],
)
def test_runs_come_out_again(toolkit: Toolkit, study: str, runs: list[str]) -> None:
    named = [word for run in runs for word in ("--run", run)]
    document = toolkit("study", "run", study, *named, "--check", "--processes", "1", "--json").json()
    assert (document["verdict"], document["runs"]) == ("verified", runs)


@pytest.mark.parametrize("name", STARTS)
def test_the_probe_s_figures_follow_from_its_evidence(toolkit: Toolkit, name: str) -> None:
    assert toolkit("probe", "report", "--study", name, "--trajectory", "base", "--check").code == 0


# --------------------------------------------------------------------------- the coupled companion and BFCL

TURNS, SCENARIOS = 182, 48
BFCL = {"turns": TURNS, "scenarios": SCENARIOS}


@pytest.mark.parametrize(
    ("study", "rule", "condition"),
    [("coupled", "D1", "C2"), ("coupled", "D2", "C2o"), ("coupled", "Q2", "C4")]
    + [("bfcl", f"{rule}_{condition}", condition) for rule in ("H6", "Q", "P10") for condition in BFCL],
)
def test_a_difference_and_its_verdict_are_those_of_the_episodes(
    study: str, rule: str, condition: str
) -> None:
    decision, found = decided(study)[rule], differences(study, condition)
    assert decision["estimate"] == pytest.approx(found.mean(), abs=1e-5)
    low, high = (np.nan if decision[end] is None else decision[end] for end in ("low", "high"))
    holds = {
        "D": (found < -1e-9).sum() >= 15 and high < 0,
        "H": (found > 1e-9).sum() >= 15 and low > 0,
        "Q": low >= -0.01 and high <= 0.01,
        "P": 0.01 <= found.mean() <= 0.05,
    }[rule[0]]
    assert (decision["verdict"] in {"pass", "met"}) == holds


@pytest.mark.slow
def test_a_ratio_is_that_of_the_variances() -> None:
    case = cases.open_case(opened("coupled"))
    for rule, condition in (("V1", "C2"), ("V2", "C4"), ("V3", "C2o")):
        own, shared = (differences("coupled", name).var(ddof=1) for name in (f"{condition}-own", condition))
        (criterion, *_) = case.decide(rule).as_dict()["criteria"]
        assert float(criterion["decimal"]) == pytest.approx(own / shared, rel=1e-4)


def test_the_checkpoints_are_those_of_the_other_study_and_have_the_registered_digests() -> None:
    registered = frozen("coupled")
    rows, source = (
        table(name, "checkpoints").sort("run_id", "step").collect() for name in ("coupled", "embedded")
    )
    for run_id, text in table("coupled", "runs").select("run_id", "specification").collect().iter_rows():
        named = json.loads(text)["checkpoints"]
        mine = rows.filter(run_id=run_id).drop("run_id")
        assert mine.equals(source.filter(run_id=named["run"]).drop("run_id"))
        lines = "".join(f"{step} {digest}\n" for step, digest in mine.select("step", "sha256").iter_rows())
        assert sha256(lines.encode()).hexdigest() == named["sha256"]
        assert named["sha256"] in registered


# ----------------------------------------------------------------------------------------------- the map

RULES = tomllib.loads(frozen("map"))
POINTS = RULES["pictures"]["map"]["points"]
CELLS = [point["statistic"].removeprefix("ratio_").replace("_", "-") for point in POINTS]
DRIFT, TRACE = np.array([point["predicted"] for point in POINTS], dtype=float).T


@cache
def start(cell: str) -> float:
    """Return success at step 0, which is the same in every run of a cell."""
    (level,) = levels("map").filter(condition=cell, step=0)["true_success"].unique()
    return float(level)


def seen(which: slice | Array = slice(None)) -> Array:
    """Return the ratio of gains of every cell, of some seeds."""
    gains = [
        [areas("map", cell, arm)[which].mean() - start(cell) for cell in CELLS]
        for arm in ("paired", "independent")
    ]
    return np.array(gains[0]) / np.array(gains[1])


def tau(x: Array, y: Array) -> float:
    pairs = list(combinations(range(len(x)), 2))
    return sum(float(np.sign((x[i] - x[j]) * (y[i] - y[j]))) for i, j in pairs) / len(pairs)


@pytest.mark.parametrize(
    "rule", [name for name in RULES["rules"] if name.split("_")[0] in {"slower", "faster", "same"}]
)
def test_a_cell_is_slower_faster_or_the_same_by_pairs_and_by_student_s_interval(rule: str) -> None:
    kind, _, cell = rule.partition("_")
    found, decision = differences("map", cell.replace("_", "-")), decided("map")[rule]
    low, high = stats.ttest_1samp(found, 0).confidence_interval(0.90 if kind == "same" else 0.95)
    holds = {
        "slower": (found < -1e-9).sum() >= 18 and high < 0,
        "faster": (found > 1e-9).sum() >= 18 and low > 0,
        "same": low >= -0.005 and high <= 0.005,
    }[kind]
    assert decision["verdict"] == ("pass" if holds else "miss")
    if kind != "same":
        assert (decision["low"], decision["high"]) == pytest.approx((low, high), abs=1e-6)


def test_estimates_over_cells_are_those_of_the_cells() -> None:
    expected = {
        "regression": stats.linregress(DRIFT, seen()).slope,
        "ranks": tau(seen(), DRIFT) - tau(seen(), TRACE),
        # Two paired groups against three independent ones.
        "equal_variance": (
            areas("map", "faults-b2", "paired") - areas("map", "faults-b3", "independent")
        ).mean(),
    }
    for rule, value in expected.items():
        assert decided("map")[rule]["estimate"] == pytest.approx(value, rel=1e-4, abs=1e-5)
    assert all(0 < start(cell) < 1 for cell in CELLS)
