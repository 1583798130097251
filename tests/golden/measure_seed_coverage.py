"""Measure how often intervals made of seeds cover the truth: prints the table of the README.

Run as `python -m tests.golden.measure_seed_coverage`. Seeds are drawn anew in every simulation, normal:

- a mean of 24 differences, deviation 0.003, as training with two prompts a step gave them;
- a ratio of two sample variances over 20 seeds, the larger one a hundred times the other: of coupled to own
  samples on the companion. The two series share no part;
- a slope: sixteen ratios of two mean gains over 24 seeds, on the ratios predicted for them, which are true.
  The independent arm gains 0.043 ± 0.006; the paired arm of a seed that times the ratio, ± 0.003.
"""

from collections.abc import Callable

import numpy as np

from toolkit.estimators import percentile_interval, t_interval
from toolkit.estimators.resampled import Resampled

LEVEL, RESAMPLES, SIMULATIONS, RNG_SEED = 0.95, 2000, 2000, 20_261
SEEDS = 24
SPREAD_SEEDS = 20
PREDICTED = np.linspace(0.7, 1.0, 16)

Ends = tuple[float, float]
Simulated = Callable[[np.random.Generator, int], bool]


def bootstrapped(sample: Resampled, number: np.ndarray) -> Ends:
    """Return the percentile ends of a number on every resample."""
    made = percentile_interval(0.0, sample.in_full(number), LEVEL)
    return made.low, made.high


def mean_by_bootstrap(rng: np.random.Generator, number: int) -> bool:
    """Whether a seed bootstrap covers a mean."""
    sample = Resampled.draws(SEEDS, RESAMPLES, number)
    low, high = bootstrapped(sample, sample.apply("mean", sample.of_seeds(rng.normal(0, 0.003, SEEDS))))
    return low <= 0 <= high


def mean_by_t(rng: np.random.Generator, number: int) -> bool:
    """Whether Student's interval covers a mean; it draws nothing."""
    del number
    low, high = t_interval(rng.normal(0, 0.003, SEEDS).tolist(), LEVEL)
    return low <= 0 <= high


def ratio_of_variances(rng: np.random.Generator, number: int) -> bool:
    """Whether a seed bootstrap covers a ratio of variances of a hundred."""
    sample = Resampled.draws(SPREAD_SEEDS, RESAMPLES, number)
    above, below = (
        sample.apply("variance", sample.of_seeds(rng.normal(0, sd, SPREAD_SEEDS))) for sd in (10, 1)
    )
    low, high = bootstrapped(sample, sample.combine("/", above, below))
    return low <= 100 <= high


def slope_over_cells(rng: np.random.Generator, number: int) -> bool:
    """Whether a seed bootstrap covers a slope of one."""
    sample = Resampled.draws(SEEDS, RESAMPLES, number)
    ratios = []
    for predicted in PREDICTED:
        independent = rng.normal(0.043, 0.006, SEEDS)
        paired = predicted * independent + rng.normal(0, 0.003, SEEDS)
        means = (sample.apply("mean", sample.of_seeds(arm)) for arm in (paired, independent))
        ratios.append(sample.combine("/", *means))
    slope = sample.apply("slope", sample.apply("list", *ratios), sample.fixed(PREDICTED.tolist()))
    low, high = bootstrapped(sample, slope)
    return low <= 1 <= high


CASES: dict[str, Simulated] = {
    "a mean over 24 seeds, seed bootstrap": mean_by_bootstrap,
    "a mean over 24 seeds, Student's t": mean_by_t,
    "a ratio of variances over 20 seeds, seed bootstrap": ratio_of_variances,
    "a slope over 16 cells of 24 seeds, seed bootstrap": slope_over_cells,
}


def covered(name: str, simulations: int = SIMULATIONS, first: int = 0) -> int:
    """Return how many of some simulations an interval covers."""
    return sum(
        CASES[name](np.random.default_rng((RNG_SEED, number)), number)
        for number in range(first, first + simulations)
    )


def table() -> str:
    """Return the table of the README."""
    rows = [f"| {name} | {100 * covered(name) / SIMULATIONS:.1f} |" for name in CASES]
    return "\n".join(["| 95 % interval of | covers, % |", "| --- | --- |", *rows])


if __name__ == "__main__":
    print(table())
