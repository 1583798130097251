"""Seeds drawn with replacement, once for everything that is measured on them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.estimators import bootstrap


def draw_seeds(seeds: int, resamples: int, rng_seed: int) -> NDArray[np.int64]:
    """Draw seeds with replacement.

    Args:
        seeds: how many there are, S >= 2.
        resamples: resamples, B >= 1.
        rng_seed: explicit seed, >= 0; the same seed gives the same draws, which are the seed pairs that
            `draw_weights` draws with it.

    Returns:
        Positions of the drawn seeds, shape (B, S).

    Raises:
        ValueError: fewer than two seeds, or no resample.

    Source:
        Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979).
    """
    if seeds < bootstrap.SMALLEST_SAMPLE or resamples < 1:
        raise ValueError(f"expected two seeds and a resample at least, found {seeds} and {resamples}")
    stream = np.random.SeedSequence(rng_seed).spawn(2)[0]
    return np.random.default_rng(stream).integers(0, seeds, (seeds, resamples)).T


def percentile_interval(estimate: float, values: ArrayLike, level: float) -> bootstrap.BootstrapInterval:
    """Percentile interval of a number that was found on every resample.

    Args:
        estimate: the number on what was measured.
        values: the number on each resample, shape (B,), in its unit.
        level: confidence level, in (0, 1).

    Returns:
        The interval, its ends with their Monte Carlo errors.

    Raises:
        ValueError: no resample, a value that is missing or not finite, or a level outside (0, 1).

    Source:
        As `crossed_bootstrap`: the same ends of the same order statistics.
    """
    given = np.array(values, dtype=float)
    if given.ndim != 1 or not given.size or not np.isfinite(given).all():
        raise ValueError(f"expected one finite value a resample, found shape {given.shape}")
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, found {level}")
    return bootstrap.percentiles([estimate], given[None], level, "seeds")[0]
