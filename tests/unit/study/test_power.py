"""The registered rule, simulated: against closed forms, known figures, and another way to simulate it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from toolkit.errors import UsageError
from toolkit.study.power import Components, Design, Power, fit, simulate

if TYPE_CHECKING:
    from toolkit.decisions.case import Case

TASK_SD = 0.25


@pytest.fixture(scope="module")
def fitted(case: Case) -> Components:
    return fit(case, "H2a", TASK_SD, 1)


def run(case: Case, fitted: Components, rule: str = "H2a", **changes: object) -> Power:
    design = Design(0.03, fitted.seed_sd, TASK_SD, 3, None, 1000, 1)
    return simulate(case.book, rule, fitted, replace(design, **changes))  # type: ignore[arg-type]


def test_the_fit_splits_the_spread_that_was_observed(fitted: Components) -> None:
    observed = float(np.var(fitted.observed, ddof=1))
    assert fitted.observed == pytest.approx((0.05390625, -0.0015625, 0.05859375))
    assert fitted.seed_sd**2 + fitted.sampling_variance == pytest.approx(observed)
    assert 0.9**2 / 3 < fitted.sampling_variance / observed < 0.9


def test_the_success_by_step_is_the_second_arms(case: Case, fitted: Components) -> None:
    rows = [
        row
        for row in case.study.rows("evaluations")
        if (row["condition"], row["arm"], row["phase"], row["regime"])
        == ("C2", "independent", "periodic", "faults_p025")
    ]
    runs = {r["run_id"] for r in case.study.rows("runs") if r["role"] in case.book.plan.roles}
    for step, success in zip(range(0, 101, 20), fitted.success["c2_auc"], strict=True):
        here = [row for row in rows if row["step"] == step and row["run_id"] in runs]
        at = [row["successes"] / row["episodes"] for row in here]
        assert success == pytest.approx(sum(at) / 3)


@pytest.mark.parametrize(("effect", "known"), [(0.0, 0.046), (0.03, 0.41), (0.05, 0.75)])
def test_the_operating_characteristics_at_a_seed_spread_of_034_are_the_known_ones(
    case: Case, fitted: Components, effect: float, known: float
) -> None:
    found = run(case, fitted, effect=effect, simulations=2000)
    assert found.pass_probability == pytest.approx(known, abs=0.03)


def test_a_normal_model_of_the_seeds_differences_gives_the_same_pass_probability(
    case: Case, fitted: Components
) -> None:
    """Mean at least 0.03, every seed positive, and a final difference that shares the seeds' effects."""
    rng = np.random.default_rng(3)
    sims = 40_000
    gaps = 0.03 + fitted.seed_sd * rng.standard_normal((sims, 3))
    area = gaps + fitted.sampling_variance**0.5 * rng.standard_normal((sims, 3))
    success = fitted.success["c2_final_noisy"][0]
    final_sd = (2 * success * (1 - success) / 800) ** 0.5
    final = gaps / 0.9 + final_sd * rng.standard_normal((sims, 3))
    passes = (area.mean(axis=1) >= 0.03) & (area > 0).all(axis=1) & (final.mean(axis=1) >= 0)
    assert run(case, fitted, simulations=2000).pass_probability == pytest.approx(passes.mean(), abs=0.035)


def test_without_any_spread_a_large_effect_always_passes_and_none_never(
    case: Case, fitted: Components
) -> None:
    assert run(case, fitted, effect=0.2, seed_sd=0.0, simulations=100).passed == 100
    assert run(case, fitted, effect=-0.2, seed_sd=0.0, simulations=100).passed == 0


def test_more_seeds_make_a_rule_on_every_seed_harder(case: Case, fitted: Components) -> None:
    few, many = (run(case, fitted, seeds=seeds, simulations=400).pass_probability for seeds in (3, 15))
    assert many < few - 0.15


def test_more_tasks_narrow_the_differences(case: Case, fitted: Components) -> None:
    few, many = (
        run(case, fitted, effect=0.05, seed_sd=0.0, tasks=tasks, simulations=400).pass_probability
        for tasks in (64, 600)
    )
    assert many > few + 0.05


def test_the_interval_covers_the_true_effect(case: Case, fitted: Components) -> None:
    found = run(case, fitted, seeds=10, simulations=400)
    assert found.covered is not None
    assert stats.binomtest(found.covered, 400, 0.95).pvalue > 1e-4 or found.covered > 380


def test_a_non_inferiority_rule_is_decided_by_its_simulated_interval(case: Case) -> None:
    components = fit(case, "H5", TASK_SD, 1)
    design = Design(0.0, components.seed_sd, TASK_SD, 3, None, 300, 1)
    passes = [
        simulate(case.book, "H5", components, replace(design, effect=effect)).pass_probability
        for effect in (-0.10, 0.0, 0.05)
    ]
    assert passes[0] < 0.05
    assert 0.2 < passes[1] < 0.8
    assert passes[2] > 0.95


def test_a_sign_can_be_wrong_where_the_effect_is_small(case: Case, fitted: Components) -> None:
    found = run(case, fitted, effect=0.002, simulations=1000)
    assert found.wrong_sign is not None
    assert found.excluded_zero is not None
    assert 0 < found.wrong_sign < found.excluded_zero
    assert run(case, fitted, effect=0.0, simulations=50).wrong_sign is None


def test_what_passed_overstates_the_effect(case: Case, fitted: Components) -> None:
    found = run(case, fitted, effect=0.02)
    assert found.mean_estimate_passed is not None
    assert found.mean_estimate_passed > 0.03


def test_the_same_seed_gives_the_same_answer_and_another_another(case: Case, fitted: Components) -> None:
    assert run(case, fitted, simulations=150) == run(case, fitted, simulations=150)
    assert (
        run(case, fitted, simulations=150).mean_estimate_passed
        != run(case, fitted, simulations=150, rng_seed=2).mean_estimate_passed
    )


@pytest.mark.parametrize("rule", ["H1a", "H1b", "P13", "gate2", "P12"])
def test_a_rule_that_reads_something_else_cannot_be_simulated(case: Case, rule: str) -> None:
    with pytest.raises(UsageError):
        fit(case, rule, TASK_SD, 1)


@pytest.mark.parametrize("change", [{"seeds": 1}, {"simulations": 0}, {"seed_sd": -0.1}])
def test_a_design_that_makes_no_sense_is_refused(
    case: Case, fitted: Components, change: dict[str, float]
) -> None:
    with pytest.raises(UsageError):
        run(case, fitted, **change)
