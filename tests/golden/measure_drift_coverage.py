"""Measure how often intervals of the drift ratio cover the truth: prints the table of the estimators' README.

Run as `python -m tests.golden.measure_drift_coverage`; a minute. Beside the interval of `drift_interval`:
percentiles of resampled tasks, for Adam and a group a task.

A group's gradient is silent with a chance of 0.475 (paired) or 0.092 (independent), as under faults, and
louder otherwise, so that both designs have one mean. Each task moves it, the same way in both designs.
"""

import numpy as np

from toolkit.estimators import drift_interval, exact_drift, task_sums, task_uncertainties

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


def on_resamples(counts: np.ndarray, designs: list[np.ndarray], batch: int, *, common: bool) -> np.ndarray:
    """Return the ratio for how often each task counts, shape (R, T); a task twice is no pair of tasks."""
    number = counts.sum(axis=1, keepdims=True)
    pairs = number**2 - (counts**2).sum(axis=1, keepdims=True)
    own = [((counts @ g) ** 2 - counts**2 @ g**2) / pairs for g in designs]
    noise = [np.maximum(counts @ g**2 / number - mu, 0) / batch for g, mu in zip(designs, own, strict=True)]
    squared = [(own[0] + own[1]) / 2] * 2 if common else own
    drifts = [(mu / np.sqrt(np.maximum(mu, 0) + v)).sum(axis=1) for mu, v in zip(squared, noise, strict=True)]
    return drifts[0] / drifts[1]


def measure(tasks: int, batch: int, *, common: bool) -> tuple[float, float, float, float, float, float]:
    """Return the true ratio, mean and deviation of its estimates, their corrected mean, both coverages."""
    rng = np.random.default_rng(0)
    paired, independent = (exact_drift(MEAN, variance(silent), batch) for silent in SILENT.values())
    truth, values, corrected, covered = paired / independent, [], [], np.zeros(2)
    for _ in range(SIMULATIONS):
        effects = SPREAD * rng.standard_normal((tasks, COORDINATES))
        designs = [draw(rng, silent, effects) for silent in SILENT.values()]
        sums = [task_sums(of, np.arange(tasks)) for of in designs]
        found = drift_interval(*sums, batch, common_mean=common).ratio
        percentiles = task_uncertainties(
            lambda n, of=designs: {"ratio": on_resamples(n, of, batch, common=common)},
            tasks,
            level=0.95,
            resamples=RESAMPLES,
            rng_seed=7,
        )["ratio"]
        assert np.isclose(percentiles.value, found.value)
        values.append(found.value)
        corrected.append(found.corrected)
        covered += [of.low <= truth <= of.high for of in (percentiles, found)]
    means = float(np.mean(values)), float(np.std(values)), float(np.mean(corrected))
    return truth, *means, *(100 * covered / SIMULATIONS)


if __name__ == "__main__":
    for tasks, batch, common in CELLS:
        truth, mean, deviation, corrected, percentiles, covers = measure(tasks, batch, common=common)
        whose = "common" if common else "each its own"
        print(
            f"| {tasks} | {batch} | {whose} | {truth:.3f} | {mean:.3f} | {deviation:.3f} | {corrected:.3f} | "
            f"{percentiles:.1f} | {covers:.1f} |",
            flush=True,
        )
