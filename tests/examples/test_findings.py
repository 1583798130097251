"""Findings about the published study: its known figures, independent oracles, and studies with other rows."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from findings import FINDINGS, Evidence, Finding, findings
from findings.condition import ratio_interval
from findings.evidence import Unavailable
from findings.probe import debiased_share
from findings.seeds import few_seeds
from findings.start import THRESHOLD
from tests.conftest import CHECKOUT
from toolkit.estimators import chi_square_tail
from toolkit.lab.probing.figures import ProbeSize
from toolkit.registers.study import Study

Rows = list[dict[str, Any]]
Found = dict[str, Finding]
Change = Callable[..., Found]

TABLES = (
    "runs",
    "evaluations",
    "groups_summary",
    "luck_share_summary",
    "probe",
    "probe_checkpoints",
    "probe_clean_tasks",
    "probe_diagnostic_tasks",
)


@dataclass
class Changed:
    """The published study with some tables changed or taken away."""

    study: Study
    tables: dict[str, Rows | None] = field(default_factory=dict)
    name: str = "changed"
    is_summary: bool = True

    def has(self, table: str) -> bool:
        return self.tables[table] is not None if table in self.tables else self.study.has(table)

    def rows(self, table: str) -> Rows:
        return self.tables.get(table) or ([] if table in self.tables else self.study.rows(table))

    def sha256(self, table: str) -> str:
        return self.study.sha256(table)


@pytest.fixture(scope="session")
def found(published: Study) -> Found:
    return {finding.id: finding for finding in findings(published)}


@pytest.fixture
def change(published: Study) -> Change:
    """Return the findings of the study with each row of one table changed."""

    def changed(table: str, alter: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Found:
        altered = [alter(dict(row)) for row in published.rows(table)]
        study = Changed(published, {table: [row for row in altered if row is not None]})
        return {finding.id: finding for finding in findings(study)}

    return changed


# ------------------------------------------------------------------------------------------------- counts


def test_every_finding_of_the_published_study_is_computed(found: Found) -> None:
    assert [(name, finding.status) for name, finding in found.items()] == [(n, "computed") for n in FINDINGS]


def ends(values: list[float]) -> list[float]:
    return [min(values), max(values)]


# Finding and number → what is known of it, and to how many digits.
KNOWN: dict[tuple[str, str], tuple[Any, int]] = {
    ("counts", "equations_broken"): (0, 0),
    ("counts", "reference_auc_exact"): (0.8625, 9),
    ("counts", "reference_auc_from_percentages"): (0.8622, 4),
    ("task_share", "within_share_of_pure_noise"): (0.882, 3),
    ("task_share", "within_share_independent"): ([0.874, 0.882], 3),
    # The notes' upper end, 1.21, is cut off rather than rounded.
    ("noise_floor", "squared_norm_over_floor"): ([1.061, 1.217], 3),
    ("comparator", "checkpoints_where_independent_is_milder"): (8, 0),
    ("spurious_by_seed", "expected"): (0.5695, 4),
    ("spurious_by_seed", "p_value"): (0.023, 3),
    ("start", "paired_at_step_0"): ([0.570, 0.531, 0.531], 3),
    ("start", "independent_at_step_0"): ([0.500, 0.531, 0.531], 3),
    ("start", "contributions_of_step_0"): ([0.007, 0, 0], 3),
    ("start", "matched_mean"): (0.0346, 4),
    ("start", "leave_one_seed_out_means"): ([0.0285, 0.0562, 0.0262], 4),
    ("start", "later_weights"): ([0.125, 0.25, 0.25, 0.25, 0.125], 9),
    ("start", "meets_mean_and_every_seed"): (["later"], 0),
    ("few_seeds", "H2a_t_interval"): ([-0.046, 0.120], 3),
    ("few_seeds", "H3_t_interval"): ([-0.028, 0.136], 3),
    ("few_seeds", "smallest_sign_flip_p"): (0.25, 9),
    ("falls", "endpoint_holds_on"): (["A", "B"], 0),
    ("falls", "all_below_base_holds_on"): (["A", "B"], 0),
    ("falls", "monotone_holds_on"): ([], 0),
    ("condition", "groups_left_above_right"): (2, 0),
    ("condition", "groups"): (512, 0),
}


def test_numbers_are_the_known_ones(found: Found) -> None:
    for (name, number), (expected, digits) in KNOWN.items():
        value = found[name].numbers[number]
        value = ends(value) if isinstance(value, list) and len(value) == 8 else value
        rounded = pytest.approx(expected, abs=0.5 * 10**-digits + 1e-12) if digits else expected
        assert value == rounded, (name, number)
    seeds = found["spurious_by_seed"].numbers
    assert (round(seeds["rates"][2], 3), round(seeds["standard_errors_from_expected"][2], 2)) == (
        0.526,
        -3.06,
    )


def test_a_wrong_count_is_named(change: Change) -> None:
    def one_more(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"groups": row["groups"] + (row["run_id"] == "t1-c4-paired-s0")}

    counts = change("groups_summary", one_more)["counts"]
    assert counts.numbers["equations_broken"] == 1
    assert "counts 1 fail: summarized groups of t1-c4-paired-s0" in counts.sentence


def test_the_largest_error_of_percentages_is_numpys(found: Found, published: Study) -> None:
    curves: dict[tuple[str, str], dict[int, float]] = {}
    for row in published.rows("evaluations"):
        if row["phase"] == "periodic":
            points = curves.setdefault((row["run_id"], row["regime"]), {})
            points[row["step"]] = row["successes"] / row["episodes"]
    errors = []
    for points in curves.values():
        steps, exact = np.array(sorted(points)), np.array([points[s] for s in sorted(points)])
        printed = np.floor(exact * 1000 + 0.5) / 1000
        errors.append(abs(np.trapezoid(exact - printed, steps)) / (steps[-1] - steps[0]))
    assert found["counts"].numbers["largest_auc_error_of_percentages"] == pytest.approx(max(errors))


# ------------------------------------------------------------------------------- the probe's transition noise


def test_the_within_task_share_is_that_of_pure_noise(found: Found) -> None:
    numbers = found["task_share"].numbers
    assert numbers["within_share_of_pure_noise"] == pytest.approx((1 - 1 / 8) / (1 - 1 / 128))
    shares = numbers["debiased_between_share_paired"] + numbers["debiased_between_share_independent"]
    assert all(-0.002 < share < 0.01 for share in shares)


@pytest.mark.parametrize("task_variance", [0.0, 0.5, 2.0])
def test_debiasing_gives_back_a_known_task_share(task_variance: float) -> None:
    rng = np.random.default_rng(4)
    tasks, groups, draws = 16, 8, 20_000
    means = rng.normal(size=(draws, tasks, 1)) * task_variance**0.5
    values = means + rng.normal(size=(draws, tasks, groups))
    row = {
        "trace_within_paired": values.var(axis=2).mean(),
        "trace_between_paired": values.mean(axis=2).var(axis=1).mean(),
    }
    share = debiased_share(row, "paired", ProbeSize(tasks, groups))
    assert share == pytest.approx(task_variance / (1 + task_variance), abs=0.01)


def test_the_ratio_of_pure_noise_is_simulated(found: Found) -> None:
    groups = found["noise_floor"].numbers["groups"]
    drawn = np.random.default_rng(8).normal(size=(20_000, groups))
    ratio = (drawn.mean(axis=1) ** 2).mean() / (drawn.var(axis=1).mean() / groups)
    assert found["noise_floor"].numbers["ratio_of_pure_noise"] == pytest.approx(ratio, abs=0.03)


def test_collisions_explain_the_contrasts_on_average(found: Found) -> None:
    numbers = found["comparator"].numbers
    seen, expected = (
        np.mean(numbers[name])
        for name in ("contrast_independent_over_stratified", "contrast_expected_from_collisions")
    )
    assert seen == pytest.approx(expected, abs=0.01)


# -------------------------------------------------------------------------------------------- grader flips


def test_the_seeds_chi_square_is_scipys(found: Found, published: Study) -> None:
    rows = [
        r for r in published.rows("groups_summary") if (r["condition"], r["arm"]) == ("C4", "independent")
    ]
    rate = 1 - 0.9**8 - 0.1**8
    statistic = 0.0
    for row in rows:
        observed = [row["spurious"], row["all_correct"] - row["spurious"]]
        expected = [rate * row["all_correct"], (1 - rate) * row["all_correct"]]
        statistic += stats.chisquare(observed, expected).statistic
    numbers = found["spurious_by_seed"].numbers
    assert numbers["chi_square"] == pytest.approx(statistic)
    assert numbers["p_value"] == pytest.approx(stats.chi2.sf(statistic, len(rows)))


@given(st.floats(0, 500), st.integers(1, 40))
def test_the_chi_square_tail_is_scipys(statistic: float, degrees: int) -> None:
    expected = stats.chi2.sf(statistic, degrees)
    assert chi_square_tail(statistic, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("statistic", "degrees"), [(-1.0, 3), (float("nan"), 3), (1.0, 0)])
def test_no_chi_square_no_tail(statistic: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="degree of freedom"):
        chi_square_tail(statistic, degrees)


def test_without_flips_there_is_no_spurious_rate(change: Change) -> None:
    found = change("runs", lambda row: row | {"flip_rate": Decimal(0)})["spurious_by_seed"]
    assert found.status == "not_evaluable"
    assert "flip rate 0" in found.sentence


# ------------------------------------------------------------------------------------------ a start unmatched


def test_the_later_steps_alone_are_numpys(found: Found, published: Study) -> None:
    success = {
        (row["arm"], row["seed"], row["step"]): row["successes"] / row["episodes"]
        for row in published.rows("evaluations")
        if (row["condition"], row["phase"], row["regime"]) == ("C2", "periodic", "faults_p025")
    }
    steps = [20, 40, 60, 80, 100]
    areas = [
        np.trapezoid([success["paired", s, k] - success["independent", s, k] for k in steps], steps) / 80
        for s in range(3)
    ]
    assert found["start"].numbers["later_differences"] == pytest.approx(areas)


def test_only_the_later_steps_alone_would_meet_the_rule(found: Found) -> None:
    assert "only the reading 'later' would turn that" in found["start"].sentence


def test_the_threshold_is_the_registered_one() -> None:
    rules = tomllib.loads((CHECKOUT / "prereg/paired-rollouts/rules.toml").read_text(encoding="utf-8"))
    assert Fraction(rules["rules"]["H2a"]["threshold"]) == THRESHOLD


# ----------------------------------------------------------------------------------------------- few seeds


@pytest.mark.parametrize("rule", ["H2a", "H3"])
def test_t_intervals_are_scipys(found: Found, rule: str) -> None:
    numbers = found["few_seeds"].numbers
    interval = stats.ttest_1samp(numbers[f"{rule}_differences"], 0).confidence_interval(0.95)
    assert numbers[f"{rule}_t_interval"] == pytest.approx(list(interval))


def test_what_three_seeds_could_detect_is_the_t_tests_effect(found: Found) -> None:
    numbers = found["few_seeds"].numbers
    for rule in ("H2a", "H3"):
        differences = np.array(numbers[f"{rule}_differences"])
        quantiles = stats.t.ppf(0.975, 2) + stats.t.ppf(0.8, 2)
        expected = quantiles * differences.std(ddof=1) / 3**0.5
        assert numbers[f"{rule}_detectable_effect"] == pytest.approx(expected)


def test_arms_without_the_same_seeds_are_not_compared(published: Study) -> None:
    rows = [row for row in published.rows("runs") if row["run_id"] != "t1-c2-paired-s2"]
    with pytest.raises(Unavailable, match="do not share"):
        few_seeds(Evidence(Changed(published, {"runs": rows})))


# ------------------------------------------------------------------------------------------ falls, condition


def test_readings_of_a_steady_fall_agree(change: Change) -> None:
    found = change(
        "probe", lambda row: row | {"trace_paired": 2.0 - row["step"] / 100, "trace_independent": 1.0}
    )
    assert "All readings agree" in found["falls"].sentence


def test_ties_are_the_groups_with_one_success_or_none(found: Found, published: Study) -> None:
    few = sum(row["successes"] <= 1 for row in published.rows("probe_clean_tasks"))
    numbers = found["condition"].numbers
    assert numbers["groups_tied"] == numbers["groups_tied_with_one_success_or_none"] == few


def test_the_ratios_are_the_published_ones(found: Found, published: Study) -> None:
    numbers = found["condition"].numbers
    ratios = dict(zip(numbers["checkpoints"], numbers["left_over_right"], strict=True))
    for row in published.rows("probe"):
        if row["condition_left"] is not None:
            expected = row["condition_left"] / row["condition_right"]
            assert ratios[f"{row['trajectory']}@{row['step']}"] == pytest.approx(expected)


def test_the_task_bootstrap_is_scipys(found: Found, published: Study) -> None:
    rows = [row for row in published.rows("probe_clean_tasks") if row["trajectory"] == "base"]
    sides = ([row["condition_left"] for row in rows], [row["condition_right"] for row in rows])
    oracle = stats.bootstrap(
        sides,
        lambda left, right, axis: left.sum(axis=axis) / right.sum(axis=axis),
        paired=True,
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(1),
    ).confidence_interval
    numbers = found["condition"].numbers
    assert [numbers["interval_low"][0], numbers["interval_high"][0]] == pytest.approx(list(oracle), abs=0.006)


def test_tasks_of_one_ratio_have_an_interval_of_no_width() -> None:
    assert ratio_interval([(1.0, 4.0), (2.0, 8.0), (5.0, 20.0)]) == pytest.approx((0.25, 0.25, 0.25))


@pytest.mark.parametrize("sides", [[], [(1.0, 1.0)], [(1.0, 0.0), (1.0, 0.0)]])
def test_no_interval_without_tasks_or_spread(sides: list[tuple[float, float]]) -> None:
    with pytest.raises(Unavailable):
        ratio_interval(sides)


# ------------------------------------------------------------------------------------------- other studies


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("rows", [None, []], ids=["absent", "empty"])
def test_a_finding_without_its_rows_says_so(published: Study, table: str, rows: Rows | None) -> None:
    missing = [f for f in findings(Changed(published, {table: rows})) if f.status == "not_evaluable"]
    assert missing
    assert all(repr(table) in finding.sentence and not finding.numbers for finding in missing)


def test_a_study_without_the_conditions_has_no_finding_on_them(change: Change) -> None:
    found = change("runs", lambda row: row | {"condition": "X"})
    missing = {name for name, finding in found.items() if finding.status == "not_evaluable"}
    assert missing == {"counts", "spurious_by_seed", "start", "few_seeds"}


def test_runs_without_groups_of_any_size_are_not_divided_by(change: Change) -> None:
    found = change("runs", lambda row: row | {"group_size": 0})
    assert found["task_share"].status == found["spurious_by_seed"].status == "not_evaluable"


def test_a_second_counted_run_of_a_seed_is_not_chosen_from(change: Change) -> None:
    found = change("runs", lambda row: row | ({"seed": 0} if row["condition"] == "C2" else {}))
    assert "two counted runs of C2" in found["start"].sentence
