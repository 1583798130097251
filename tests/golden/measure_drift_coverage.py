"""Measure how often intervals of the drift ratio cover the truth: prints the table of the estimators' README.

Run as `python -m tests.golden.measure_drift_coverage`; half a minute.

A group's gradient is silent with a chance of 0.475 (paired) or 0.092 (independent), as under faults, and
louder otherwise, so that both designs have one mean. Each task moves it, the same way in both designs.
"""

import numpy as np

from toolkit.estimators import drift_interval, exact_drift, task_sums

COORDINATES, SIGNAL, SIMULATIONS, RESAMPLES = 60, 12, 200, 400
MEAN = np.concatenate([np.linspace(0.1, 0.5, SIGNAL), np.zeros(COORDINATES - SIGNAL)])
SPREAD = np.where(np.arange(COORDINATES) < COORDINATES // 2, 0.6, 0.1)
OF_TASKS = 0.5
SILENT = {"paired": 0.475, "independent": 0.092}
CELLS = ((64, 2, True), (64, 2, False), (64, 24, True), (64, 24, False), (256, 2, True), (256, 24, True))


def draw(rng: np.random.Generator, silent: float, effects: np.ndarray) -> np.ndarray:
    """Return a gradient a task, shape (T, P)."""
    loud = (rng.random((len(effects), 1)) >= silent) / (1 - silent)
    return loud * (MEAN + OF_TASKS * effects + SPREAD * rng.standard_normal(effects.shape))


def variance(silent: float) -> np.ndarray:
    """Return the true variance of each coordinate."""
    return (MEAN**2 + (1 + OF_TASKS**2) * SPREAD**2) / (1 - silent) - MEAN**2


def measure(tasks: int, batch: int, *, common: bool) -> tuple[float, float, float, float, float]:
    """Return the true ratio, mean and deviation of its estimates, and how often both intervals cover it."""
    rng = np.random.default_rng(0)
    paired, independent = (exact_drift(MEAN, variance(silent), batch) for silent in SILENT.values())
    truth, values, covered = paired / independent, [], np.zeros(2)
    for _ in range(SIMULATIONS):
        effects = SPREAD * rng.standard_normal((tasks, COORDINATES))
        designs = [task_sums(draw(rng, s, effects), np.arange(tasks)) for s in SILENT.values()]
        found = drift_interval(*designs, batch, common_mean=common, resamples=RESAMPLES, rng_seed=7).ratio
        values.append(found.value)
        near = abs(found.corrected - truth) <= 1.96 * found.standard_error
        covered += [found.low <= truth <= found.high, near]
    return truth, float(np.mean(values)), float(np.std(values)), *(100 * covered / SIMULATIONS)


if __name__ == "__main__":
    for tasks, batch, common in CELLS:
        truth, mean, deviation, percentile, jackknife = measure(tasks, batch, common=common)
        whose = "common" if common else "each its own"
        print(
            f"| {tasks} | {batch} | {whose} | {truth:.3f} | {mean:.3f} | {deviation:.3f} | "
            f"{percentile:.1f} | {jackknife:.1f} |",
            flush=True,
        )
