"""The decisions on the published study are the ones the authors reached, and the figures agree."""

import csv
from fractions import Fraction

import pytest

from tests.conftest import CHECKOUT
from tests.golden.test_paper_tables import printed_as
from toolkit.decisions.case import Case
from toolkit.decisions.decision import Decision

SOURCE = CHECKOUT / "registers" / "published" / "source"

REACHED = (
    ("H1a H1b", "pass", "not_estimated"),
    ("H3 H5", "pass", "includes_zero"),
    ("H2a H2b", "miss", "includes_zero"),
    ("H4 H6 P3 P5 P7 P8 P10", "not_run", "not_estimated"),
    ("gate2", "estimator and boundary framing", "not_estimated"),
    ("P1 P13", "met", "not_estimated"),
    ("P4 P6", "met", "includes_zero"),
    ("P2 P9", "partially_met", "includes_zero"),
    ("P12", "superseded", "not_estimated"),
)
EXPECTED = {rule: (verdict, evidence) for rules, verdict, evidence in REACHED for rule in rules.split()}


@pytest.fixture(scope="module")
def decisions(case: Case) -> dict[str, Decision]:
    return {decision.rule: decision for decision in case.decide_all()}


def source(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file that the authors' figures were transcribed to."""
    with (SOURCE / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def original() -> dict[tuple[str, str], str]:
    """Return the authors' decision registers: (hypothesis/figure/seed) → printed value."""
    return {(r["hypothesis"], f"{r['figure']}/{r['seed']}"): r["value"] for r in source("decisions")}


def test_every_registered_rule_has_the_expected_verdict(decisions: dict[str, Decision]) -> None:
    assert {name: (d.verdict, d.evidence) for name, d in decisions.items()} == EXPECTED


def test_h2a_has_the_exact_mean_and_its_seeds(decisions: dict[str, Decision]) -> None:
    document = decisions["H2a"].as_dict()
    assert document["criteria"][0]["value"] == "71/1920"
    assert document["criteria"][0]["decimal"] == 0.03698
    by_seed = {"0": 0.05391, "1": -0.00156, "2": 0.05859}
    assert document["estimate"] == {"endpoint": "c2_auc", "mean": 0.03698, "by_seed": by_seed}
    assert [c["holds"] for c in document["criteria"]] == [True, False, True]
    interval = {"level": 0.95, "low": -0.0039, "high": 0.0779, "source": "published"}
    assert interval.items() <= document["interval"].items()


def test_rules_rest_on_what_was_published(decisions: dict[str, Decision]) -> None:
    assert decisions["H2b"].readings == {"implemented": "miss", "literal": "miss"}
    assert decisions["H2b"].readings_agree
    assert decisions["H3"].as_dict()["criteria"][0]["value"] == "31/576"
    h5 = decisions["H5"].as_dict()
    assert (h5["interval"]["source"], h5["criteria"][0]["basis"]) == ("published", ["interval as published"])
    p12 = decisions["P12"].as_dict()
    assert p12["original_verdict"] == "missed"
    assert printed_as(Fraction(p12["criteria"][0]["value"]), "0.030")
    p13 = decisions["P13"]
    assert p13.readings == {"endpoint": "met", "all_below_base": "met", "monotone": "missed"}
    assert (p13.binding, p13.readings_agree) == ("endpoint", False)
    assert {n: (d.amendment.id, d.amendment.relation) for n, d in decisions.items() if d.amendment} == {
        "H1b": ("A1", "replaces"),
        "P13": ("A1", "restates"),
    }


def test_the_frozen_h1b_could_not_have_been_evaluated(case: Case) -> None:
    """Amendment A1 was needed: the gate-1 run had kept none of its first checkpoints."""
    from toolkit.decisions.engine import Engine
    from toolkit.rules.rulebook import load_rulebook

    frozen = Engine(load_rulebook(case.registration.rules), ("paired-rollouts", ""), case.engine.registers)
    decision = frozen.decide("H1b")
    assert decision.verdict == "not_evaluable"
    assert any("step=20" in reason for reason in decision.missing)


@pytest.mark.parametrize(
    ("rule", "figure"),
    [("H2a", "auc_difference"), ("H2b", "auc_difference"), ("H3", "difference"), ("H5", "difference")],
)
def test_estimates_are_the_original_ones(decisions: dict[str, Decision], rule: str, figure: str) -> None:
    estimate = decisions[rule].estimate
    assert estimate is not None
    for member, value in {**dict(estimate.members.items), "mean": estimate.mean}.items():
        cell = f"{float(original()[rule, f'{figure}/{member}']):.4f}"
        assert printed_as(value, cell), (rule, member, cell, value)


def test_verdicts_are_those_of_the_original_registers(decisions: dict[str, Decision]) -> None:
    """H1a is registered by condition there; both parts pass. The probe's own are those of H1b."""
    passes = {rule: value == "true" for (rule, figure), value in original().items() if figure == "passes/"}
    assert passes == {rule: decisions[rule].verdict == "pass" for rule in ("H1a", "H2a", "H3", "H5", "H2b")}
    of_probe = [r["value"].lower() for r in source("probe") if r["figure"] == "verdict_passes"]
    assert (of_probe, decisions["H1b"].verdict) == (["true", "true"], "pass")


def test_areas_and_ratios_are_those_of_the_original_registers(case: Case) -> None:
    """AUC and probe ratios are not stored here; recomputed, they are the ones the authors printed."""
    from toolkit.estimators import auc

    success = {
        (r["run_id"], r["regime"], r["step"]): Fraction(r["successes"], r["episodes"])
        for r in case.study.rows("evaluations")
        if r["phase"] == "periodic"
    }
    steps = (0, 20, 40, 60, 80, 100)
    for run in source("runs"):
        noisy = "flips_q010" if run["condition"] == "C4" else "faults_p025"
        regimes = {"auc_clean": "clean", "auc_noisy": noisy, "auc_challenge": "challenge"}
        for column, regime in regimes.items():
            value = auc([success[run["run_id"], regime, step] for step in steps], steps)
            assert float(value) == pytest.approx(float(run[column]), rel=0, abs=1e-12)
    rows = {(r["trajectory"], r["step"], r["noise"], r["estimator"]): r for r in case.study.rows("probe")}
    ratios = [r for r in source("probe") if r["figure"] == "ratio_paired_over_independent"]
    assert len(ratios) == 32
    for ratio in ratios:
        row = rows[ratio["trajectory"], int(ratio["step"]), ratio["noise"], ratio["estimator"]]
        measured = row["trace_paired"] / row["trace_independent"]
        assert measured == pytest.approx(float(ratio["value"]), rel=1e-12)


def test_steps_to_threshold_are_those_of_the_original_registers(decisions: dict[str, Decision]) -> None:
    """Only C2's threshold means anything; the registered form interpolates linearly."""
    printed = {
        (r["arm"], r["seed"]): float(r["steps_to_threshold"])
        for r in source("runs")
        if r["condition"] == "C2"
    }
    assert len(printed) == 6
    for estimate, arm in zip(decisions["H2a"].secondary, ("paired", "independent"), strict=True):
        assert estimate.members is not None
        for seed, value in estimate.members.items:
            assert float(value) == pytest.approx(printed[arm, seed], abs=1e-9)


def test_the_frozen_probe_endpoints_are_those_before_the_amendment(case: Case) -> None:
    """The frozen comparator was stratified, on one trajectory; amendment A1 resamples labels, on two."""
    frozen, amended = case.book.endpoints["probe_transition_gate1"], case.book.endpoints["probe_transition_A"]
    assert frozen.outcome.columns == ("trace_paired", "trace_stratified")
    assert amended.outcome.columns == ("trace_paired", "trace_independent")
