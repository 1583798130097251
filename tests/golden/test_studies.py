"""The studies that are shipped: what their registers hold, and what was decided on them.

Levels, differences and intervals come from the Parquet files and the frozen texts alone.
"""

import json
import re
import tomllib
from collections import Counter
from functools import cache
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.conftest import CHECKOUT, Toolkit
from tests.golden import measure_levels
from toolkit import api
from toolkit.lab.play.rows import rows_of_run
from toolkit.lab.policies.language_model.loading import model_path
from toolkit.lab.policies.language_model.opening import folder_sha256
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
    decisions = api.open_case(opened(name)).decide_all()
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


@pytest.mark.parametrize(("name", "pair"), PAIRS)
def test_arms_of_one_seed_met_the_same_tasks_and_the_paired_one_shares_schedules(name, pair) -> None:
    met = []
    for arm in ("paired", "independent"):
        rows = rows_of_run(opened(name), "groups", pair.format(arm))
        met.append([(row["step"], row["position"], row["task"]) for row in rows])
        assert {len(set(row["schedule_seeds"])) == 1 for row in rows} == {arm == "paired"}
    assert met[0] == met[1]


@pytest.mark.parametrize("name", STARTS)
def test_a_language_model_starts_from_its_model_and_learns_from_standardized_rewards(name: str) -> None:
    study = opened(name)
    assert {run["model_commit"] for run in study.rows("runs")} == {
        folder_sha256(Path(model_path(STARTS[name])))
    }
    for pair in STUDIES[name].pairs:
        for row in rows_of_run(study, "groups", pair.format("paired")):
            rewards = np.array(row["observed_rewards"], float)
            expected = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
            assert row["advantages"] == pytest.approx(expected, abs=1e-5)


def test_every_step_of_a_language_model_has_its_figures_and_its_seconds() -> None:
    study = opened("small-lm")
    seconds = Counter({row["run_id"]: len(row["step_seconds"]) for row in study.rows("launches")})
    for run in study.rows("runs"):
        rows = rows_of_run(study, "steps", run["run_id"])
        assert [row["step"] for row in rows] == [*range(1, run["steps"] + 1)]
        teaching = {g["step"] for g in rows_of_run(study, "groups", run["run_id"]) if not g["zero_variance"]}
        assert {row["step"] for row in rows if row["grad_norm"]} == teaching
        assert all(row["entropy"] > 0 and row["clipped"] == 0 for row in rows)
        assert seconds[run["run_id"]] == run["steps"]


@pytest.mark.parametrize(("names", "most"), [(["coupled"], 16e6), (["coupled", "map"], 40e6)])
def test_registers_are_small(names: list[str], most: float) -> None:
    assert sum(path.stat().st_size for name in names for path in (REGISTERS / name).rglob("*.parquet")) < most


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
    case = api.open_case(opened("coupled"))
    for rule, condition in (("V1", "C2"), ("V2", "C4"), ("V3", "C2o")):
        own, shared = (differences("coupled", name).var(ddof=1) for name in (f"{condition}-own", condition))
        (criterion, *_) = case.decide(rule).as_dict()["criteria"]
        assert float(criterion["decimal"]) == pytest.approx(own / shared, rel=1e-4)


@pytest.mark.parametrize("condition", BFCL)
def test_intervals_are_those_of_a_bootstrap_of_seeds_and_tasks(condition: str) -> None:
    weight = pl.when(pl.col("step").is_in([0, 100])).then(0.1).otherwise(0.2)
    sign = pl.when(pl.col("arm") == "paired").then(1.0).otherwise(-1.0)
    summed = (pl.col("true_success") * weight * sign).sum() / 2
    by_cell = episodes("bfcl", condition).group_by("seed", "task").agg(summed).sort("seed", "task").collect()
    cells = by_cell["true_success"].to_numpy().reshape(20, BFCL[condition])
    rng, drawn = np.random.default_rng(0), []
    for _ in range(4000):
        seeds = rng.integers(20, size=20)
        drawn.append(cells[seeds][:, rng.integers(cells.shape[1], size=cells.shape[1])].mean())
    decision = decided("bfcl")[f"H6_{condition}"]
    assert np.quantile(drawn, [0.025, 0.975]) == pytest.approx((decision["low"], decision["high"]), abs=3e-4)


@pytest.mark.parametrize("condition", ["C2", "C4", "C2o"])
def test_at_step_0_all_forty_runs_have_one_set_of_episodes(condition: str) -> None:
    """One policy and one key: every column of every episode is the same, and with own samples it is not."""
    for name, alike in ((condition, True), (f"{condition}-own", False)):
        start = episodes("coupled", name, 0).collect()
        assert start["run_id"].n_unique() == 40
        said = start.drop("run_id", "arm", "seed").unique()
        assert (len(said) == len(said.unique(["task", "schedule"]))) == alike


def test_at_step_0_all_runs_of_bfcl_succeed_alike() -> None:
    for condition, tasks in BFCL.items():
        start = episodes("bfcl", condition, 0).collect()
        outcomes = start.group_by("task", "schedule").agg(pl.col("true_success").n_unique())
        assert (outcomes.height, outcomes["true_success"].max()) == (2 * tasks, 1)


def test_trained_policies_differ_in_few_shared_episodes_and_in_many_of_their_own() -> None:
    for name, least, most in (("C2", 0, 0.03), ("C2-own", 0.1, 1)):
        last = episodes("coupled", name, 100).collect()
        wide = last.pivot(on="arm", index=["seed", "task", "schedule"], values="true_success")
        assert least < (wide["paired"] != wide["independent"]).mean() < most


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


def test_pools_of_bfcl_are_registered_and_hold_no_text_of_the_benchmark() -> None:
    prompts = table("bfcl", "task_pools").collect()["prompt"]
    assert all(re.fullmatch(r"multi_turn_base_[\d.]+, [0-9a-f]{64}", prompt) for prompt in prompts)
    for pool in ("train", "validation"):
        assert re.search(rf'^{pool} = "[0-9a-f]{{64}}"$', frozen("bfcl"), re.MULTILINE)


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


def test_intervals_over_seeds_are_about_those_of_other_draws() -> None:
    rng = np.random.default_rng(5)
    slopes = [stats.linregress(DRIFT, seen(rng.integers(0, 24, 24))).slope for _ in range(200)]
    low, high = (decided("map")["regression"][end] for end in ("low", "high"))
    assert np.percentile(slopes, (2.5, 97.5)) == pytest.approx((low, high), abs=0.15 * (high - low))
