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
    # Each of these was found by numpy or scipy from the rows before it was written down.
    ("counts", "largest_auc_error_of_percentages"): (0.0004, 9),
    ("task_share", "debiased_between_share_paired"): ([-0.001242036, 0.002632648], 9),
    ("task_share", "debiased_between_share_independent"): ([0.000249770, 0.009045765], 9),
    ("noise_floor", "ratio_of_pure_noise"): (1.007874016, 9),
    ("comparator", "contrast_independent_over_stratified"): ([0.918813596, 0.977691978], 9),
    ("comparator", "contrast_expected_from_collisions"): ([0.927608790, 0.952183480], 9),
    ("spurious_by_seed", "chi_square"): (9.579434741, 9),
    ("start", "later_differences"): ([0.041015625, 0.00390625, 0.068359375], 9),
    ("few_seeds", "H2a_detectable_effect"): (0.103609998, 9),
    ("few_seeds", "H3_detectable_effect"): (0.102424378, 9),
    ("condition", "left_over_right"): ([0.189408159, 0.274867111], 9),
    ("condition", "interval_low"): ([0.123159540, 0.208269750], 9),
    ("condition", "interval_high"): ([0.254545364, 0.345530592], 9),
    ("condition", "groups_tied"): (9, 0),
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


# ------------------------------------------------------------------------------- the probe's transition noise


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


# -------------------------------------------------------------------------------------------- grader flips


@given(st.floats(0, 500), st.integers(1, 40))
def test_the_chi_square_tail_is_scipys(statistic: float, degrees: int) -> None:
    expected = stats.chi2.sf(statistic, degrees)
    assert chi_square_tail(statistic, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_without_flips_there_is_no_spurious_rate(change: Change) -> None:
    found = change("runs", lambda row: row | {"flip_rate": Decimal(0)})["spurious_by_seed"]
    assert found.status == "not_evaluable"
    assert "flip rate 0" in found.sentence


# ------------------------------------------------------------------------------------------ a start unmatched


def test_only_the_later_steps_alone_would_meet_the_rule(found: Found) -> None:
    assert "only the reading 'later' would turn that" in found["start"].sentence


def test_the_threshold_is_the_registered_one() -> None:
    rules = tomllib.loads((CHECKOUT / "prereg/paired-rollouts/rules.toml").read_text(encoding="utf-8"))
    assert Fraction(rules["rules"]["H2a"]["threshold"]) == THRESHOLD


# ----------------------------------------------------------------------------------------------- few seeds


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
