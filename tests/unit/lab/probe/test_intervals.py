"""Intervals of a probe: tasks left out and drawn anew explicitly, and what noise alone gives beside them."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.lab.probe import small
from tests.unit.lab.probe.small import CLEAN, DESIGN, FAULTY
from toolkit.lab.probe.design import DESIGNS, INDEPENDENT, OUTCOME, PAIRED, TRANSITION
from toolkit.lab.probe.evidence import GramEvidence
from toolkit.lab.probe.figures import reference_tokens
from toolkit.lab.probe.moments import moments
from toolkit.lab.probe.summary import estimates, probe_row, sides
from toolkit.lab.probe.uncertainty import Resampling, interval_rows
from toolkit.registers.arrow import Row
from toolkit.registers.row_tables import FIGURES

TASKS = {OUTCOME: CLEAN.tasks, TRANSITION: FAULTY.tasks}
KINDS = [(noise, estimator) for noise in (OUTCOME, TRANSITION) for estimator in ("MC", "SW")]
BOTH = pytest.mark.parametrize(("noise", "estimator"), KINDS)
SIX_DIGITS = 1e-5


def intervals(noise: str, estimator: str) -> dict[str, Row]:
    rows = small.derived(small.measured())[0]["probe_intervals"]
    return {r["figure"]: r for r in rows if (r["noise"], r["estimator"]) == (noise, estimator)}


def chosen(evidence: GramEvidence, tasks: Sequence[int]) -> GramEvidence:
    """Return the evidence of some tasks alone; a task may be there more than once."""
    at = list(tasks)
    return replace(
        evidence,
        rewards=evidence.rewards[at],
        tokens=evidence.tokens[at],
        weights=evidence.weights[at],
        gram=evidence.gram[at],
        products={name: found[:, at][:, :, :, at] for name, found in evidence.products.items()},
    )


def recomputed(noise: str, estimator: str, tasks: Sequence[int]) -> dict[str, float]:
    """Return every ratio and share of the summary row of some tasks alone."""
    both = small.measured()
    evidence = chosen(both[noise], tasks)
    listed = None
    if noise == TRANSITION:
        every = small.groups().items()
        listed = {design: {at: groups[task] for at, task in enumerate(tasks)} for design, groups in every}
    by_design = moments(
        noise, evidence.rewards, evidence.weights, evidence.gram, flip_rate=DESIGN.flip_rate, groups=listed
    )
    found = estimates(evidence, by_design, reference_tokens(both, DESIGN))[estimator]
    row = probe_row(evidence, estimator, found, DESIGN.flip_rate)
    figures = {
        "trace_ratio": row["trace_paired"] / row["trace_independent"],
        "within_ratio": row["trace_within_paired"] / row["trace_within_independent"],
    }
    if (noise, estimator) == (OUTCOME, "MC"):
        figures["condition_ratio"] = row["condition_left"] / row["condition_right"]
    if noise == TRANSITION:
        figures["trace_ratio_stratified"] = row["trace_paired"] / row["trace_stratified"]
    for design in DESIGNS[noise]:
        figures[f"within_share_{design}"] = row[f"trace_within_{design}"] / row[f"trace_{design}"]
    return figures


@BOTH
def test_every_figure_has_a_row_with_the_ratio_of_the_summary_row(noise: str, estimator: str) -> None:
    rows, ratios = intervals(noise, estimator), recomputed(noise, estimator, range(TASKS[noise]))
    assert set(rows) == {*ratios, *(f"norm_over_floor_{design}" for design in DESIGNS[noise])}
    assert set(rows) <= set(FIGURES)
    assert {row["tasks"] for row in rows.values()} == {TASKS[noise]}
    for name, value in ratios.items():
        assert rows[name]["value"] == pytest.approx(value, rel=SIX_DIGITS), name
        assert rows[name]["value"] == float(f"{rows[name]['value']:.6g}")


@BOTH
def test_the_jackknife_recomputes_everything_without_each_task(noise: str, estimator: str) -> None:
    tasks, found = TASKS[noise], intervals(noise, estimator)
    whole = recomputed(noise, estimator, range(tasks))
    left_out = [recomputed(noise, estimator, [t for t in range(tasks) if t != out]) for out in range(tasks)]
    for name, value in whole.items():
        values = [one[name] for one in left_out]
        mean = sum(values) / tasks
        spread = math.sqrt((tasks - 1) / tasks * sum((v - mean) ** 2 for v in values))
        row = found[name]
        assert row["standard_error"] == pytest.approx(spread, rel=SIX_DIGITS, abs=1e-12), name
        corrected = tasks * value - (tasks - 1) * mean
        assert row["corrected"] == pytest.approx(corrected, rel=SIX_DIGITS, abs=1e-12), name


@BOTH
def test_the_interval_is_that_of_repeated_tasks(noise: str, estimator: str) -> None:
    """Each resample recomputed from the evidence of its tasks, the repeated ones repeated."""
    tasks, resamples = TASKS[noise], 200
    assert DESIGN.resamples == resamples
    drawn = np.random.default_rng(DESIGN.rng_seed).integers(0, tasks, (resamples, tasks))
    values = [recomputed(noise, estimator, row) for row in drawn.tolist()]
    found = intervals(noise, estimator)
    for name in values[0]:
        ends = np.quantile([one[name] for one in values], [0.025, 0.975])
        row = found[name]
        assert (row["low"], row["high"]) == pytest.approx(ends, rel=SIX_DIGITS, abs=1e-10), name
        assert row["low"] <= row["value"] <= row["high"]


@pytest.mark.parametrize("estimator", ["MC", "SW"])
def test_shares_under_transition_noise_stand_beside_pure_noise(estimator: str) -> None:
    """Disjoint groups a task are the schedules, also where overlapping groups were drawn."""
    tasks, groups = FAULTY.tasks, FAULTY.schedules
    pure = (1 - 1 / groups) / (1 - 1 / (tasks * groups))
    for design in DESIGNS[TRANSITION]:
        row = intervals(TRANSITION, estimator)[f"within_share_{design}"]
        assert row["pure_noise"] == pytest.approx(pure, rel=SIX_DIGITS)
        share = row["value"]
        noise = share / (1 - 1 / groups)
        real = (1 - share) / (1 - 1 / tasks) - noise / groups
        assert row["debiased"] == pytest.approx(1 - real / (real + noise), rel=1e-4)


@pytest.mark.parametrize("estimator", ["MC", "SW"])
def test_shares_under_outcome_noise_have_no_pure_noise_beside_them(estimator: str) -> None:
    """Masks are listed exactly: no sampling within a task is there to leave a bias."""
    for name, row in intervals(OUTCOME, estimator).items():
        if not name.startswith("norm_over_floor"):
            assert (row["pure_noise"], row["debiased"]) == (None, None)


@BOTH
def test_norms_stand_beside_their_own_sampling_variance(noise: str, estimator: str) -> None:
    rows = small.derived(small.measured())[0]["probe"]
    (summary,) = (r for r in rows if (r["noise"], r["estimator"]) == (noise, estimator))
    number = CLEAN.tasks if noise == OUTCOME else FAULTY.tasks
    for design in DESIGNS[noise]:
        row = intervals(noise, estimator)[f"norm_over_floor_{design}"]
        ratio = summary[f"mean_norm_{design}"] ** 2 * number / summary[f"trace_between_{design}"]
        assert row["value"] == pytest.approx(ratio, rel=SIX_DIGITS)
        assert row["pure_noise"] == pytest.approx(number / (number - 1), rel=SIX_DIGITS)
        assert row["debiased"] == pytest.approx(1 - number / (number - 1) / ratio, rel=1e-4, abs=1e-6)
        assert [row[name] for name in ("low", "high", "standard_error", "corrected")] == [None] * 4


def test_both_sides_of_the_condition_are_never_negative() -> None:
    evidence = small.measured()[OUTCOME]
    tiny = replace(evidence, gram=-np.abs(evidence.gram) * 1e-18)
    found = sides(tiny)
    assert (found.left >= 0).all()
    assert (found.right >= 0).all()
    assert found.successes.tolist() == evidence.rewards.sum(axis=1).tolist()


def test_a_figure_that_a_resample_does_not_define_has_its_value_alone() -> None:
    """One mixed group among groups without a success: some resample meets none but these."""
    both = small.measured()
    clean = both[OUTCOME]
    rewards = clean.rewards * 0
    rewards[2, 0] = 1
    only = np.arange(CLEAN.tasks) == 2
    products = {e: found * only[:, None, None] * only for e, found in clean.products.items()}
    clean = replace(clean, rewards=rewards, products=products)
    by_design = moments(OUTCOME, rewards, clean.weights, clean.gram, flip_rate=0.1, groups=None)
    found = estimates(clean, by_design, 1.0)["MC"]
    how = Resampling(0.95, 200, 13, 1)
    rows = interval_rows(OUTCOME, "MC", found, sides(clean), how)
    resampled = {row["figure"]: row for row in rows if not row["figure"].startswith("norm_over_floor")}
    assert len(resampled) == 5
    paired, independent = (found.trace(design) for design in (PAIRED, INDEPENDENT))
    ratio = float(paired.total / independent.total)
    assert resampled["trace_ratio"]["value"] == pytest.approx(ratio, rel=1e-5)
    for row in resampled.values():
        assert [row[name] for name in ("low", "high", "standard_error", "corrected")] == [None] * 4
