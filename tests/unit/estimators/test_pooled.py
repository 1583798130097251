"""Pooled traces against explicit vectors, and what few groups leave against simulated random effects."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.estimators import debiased_between_share, noise_within_share, norm_over_floor, pooled_trace


def explicit(gradients: np.ndarray) -> tuple[float, float, float, float]:
    """Return total, within, between and squared norm of gradients (T, J, P), coordinate by coordinate."""
    flat = gradients.reshape(-1, gradients.shape[-1])
    means = gradients.mean(axis=1)
    return (
        float(np.var(flat, axis=0).sum()),
        float(np.var(gradients, axis=1).sum(axis=1).mean()),
        float(np.var(means, axis=0).sum()),
        float((flat.mean(axis=0) ** 2).sum()),
    )


def parts(gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the estimator takes: E‖g_t‖² and the products of the tasks' means."""
    means = gradients.mean(axis=1)
    return (gradients**2).sum(axis=2).mean(axis=1), np.einsum("tp,sp->ts", means, means)


def effects(tasks: int, groups: int, tau: float, sigma: float, coordinates: int = 20_000) -> np.ndarray:
    """Draw a one-way random-effects model; many coordinates make its traces nearly their expectations."""
    rng = np.random.default_rng(17)
    between = tau * rng.standard_normal((tasks, 1, coordinates))
    return between + sigma * rng.standard_normal((tasks, groups, coordinates))


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 5))
def test_a_trace_and_its_parts_are_numpys_variances(seed: int, tasks: int, groups: int) -> None:
    gradients = np.random.default_rng(seed).normal(1, 1, (tasks, groups, 4))
    found = pooled_trace(*parts(gradients))
    assert (found.total, found.within, found.between, found.squared_norm) == pytest.approx(
        explicit(gradients), abs=1e-12
    )
    assert found.total == pytest.approx(found.within + found.between, abs=1e-12)


@given(st.integers(0, 2**31), st.integers(1, 6))
def test_a_count_repeats_a_task_with_all_its_groups(seed: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    gradients = rng.normal(1, 1, (tasks, 3, 4))
    counts = rng.integers(0, 4, (5, tasks))
    counts[:, 0] += 1
    found = pooled_trace(*parts(gradients), counts)
    for at, row in enumerate(counts):
        repeated = explicit(np.repeat(gradients, row, axis=0))
        one = [part[at] for part in (found.total, found.within, found.between, found.squared_norm)]
        assert one == pytest.approx(repeated, abs=1e-11)


@pytest.mark.parametrize(
    ("second", "products", "counts", "reason"),
    [
        ([], np.eye(0), None, "expected moments"),
        ([1, 2], np.eye(3), None, "expected moments"),
        ([[1, 2]], np.eye(2), None, "expected moments"),
        ([1, math.nan], np.eye(2), None, "not finite"),
        ([1, 2], [[1, math.inf], [0, 1]], None, "not finite"),
        ([1, 2], np.eye(2), [1, 1], "expected counts"),
        ([1, 2], np.eye(2), [[1, 1, 1]], "expected counts"),
    ],
)
def test_what_cannot_be_pooled_is_refused(
    second: object, products: object, counts: object, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        pooled_trace(second, products, counts)


# ------------------------------------------------------------------------------------- what few groups leave


@pytest.mark.parametrize(("tasks", "groups"), [(16, 8), (4, 2), (3, 5), (2, 3)])
def test_tasks_that_do_not_differ_have_the_within_share_of_noise(tasks: int, groups: int) -> None:
    found = pooled_trace(*parts(effects(tasks, groups, 0, 1.5)))
    assert found.within / found.total == pytest.approx(noise_within_share(tasks, groups), rel=0.02)


def test_the_published_probes_share_is_0_882() -> None:
    """The note on the published f_trans: 16 tasks, 8 groups' worth of rollouts each."""
    assert noise_within_share(16, 8) == pytest.approx((7 / 8) / (127 / 128), rel=1e-15)
    assert f"{noise_within_share(16, 8):.3f}" == "0.882"
    assert noise_within_share(5, 1) == 0


@pytest.mark.parametrize(("tasks", "groups"), [(16, 8), (5, 2), (3, 4)])
@pytest.mark.parametrize(("tau", "sigma"), [(0.0, 1.0), (1.0, 1.0), (0.5, 2.0), (3.0, 0.5)])
def test_a_debiased_share_is_that_of_the_model(tasks: int, groups: int, tau: float, sigma: float) -> None:
    found = pooled_trace(*parts(effects(tasks, groups, tau, sigma)))
    share = debiased_between_share(float(found.within), float(found.between), tasks, groups)
    assert share == pytest.approx(tau**2 / (tau**2 + sigma**2), abs=0.015)


def test_what_varies_less_than_noise_is_below_zero() -> None:
    assert debiased_between_share(1, 0, 4, 4) < 0


@pytest.mark.parametrize(("tasks", "groups"), [(16, 8), (2, 3), (2, 1)])
def test_a_mean_of_nothing_but_noise_is_its_floor(tasks: int, groups: int) -> None:
    found = pooled_trace(*parts(effects(tasks, groups, 0, 2)))
    number = tasks * groups
    ratio = norm_over_floor(float(found.squared_norm), float(found.total), number)
    assert ratio == pytest.approx(number / (number - 1), rel=0.03)


def test_a_gradient_stands_above_the_floor_by_its_own_length() -> None:
    """E‖mean g‖² = ‖E g‖² + σ²/n: here ‖E g‖² is nine times σ²/n, the trace its plug-in value."""
    gradients = effects(4, 4, 0, 1)
    gradients += 3 / math.sqrt(16)
    found = pooled_trace(*parts(gradients))
    ratio = norm_over_floor(float(found.squared_norm), float(found.total), 16)
    assert ratio == pytest.approx(10 * 16 / 15, rel=0.03)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (noise_within_share, (1, 8)),
        (noise_within_share, (16, 0)),
        (debiased_between_share, (1, 1, 1, 8)),
        (debiased_between_share, (1, 1, 16, 1)),
        (debiased_between_share, (0, 1, 16, 8)),
        (debiased_between_share, (math.nan, 1, 16, 8)),
        (norm_over_floor, (1, 0, 8)),
        (norm_over_floor, (1, math.nan, 8)),
        (norm_over_floor, (1, 1, 1)),
    ],
)
def test_too_little_data_is_refused(function: object, arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="expected"):
        function(*arguments)
