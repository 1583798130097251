"""The registered interval against other ways to make it, in one process and in turns."""

import numpy as np
from arch.bootstrap import IndependentSamplesBootstrap
from scipy import stats

from tests.benchmarks.harness import medians, verdict
from toolkit.estimators import crossed_bootstrap, crossed_bootstraps, draw_weights

SEEDS, TASKS, RESAMPLES, ENDPOINTS, ROUNDS = 3, 64, 10_000, 20, 9
# Way, and the one that it is compared with → the largest ratio.
GOALS = {("one", "scipy"): 1.2, ("one", "loop"): 0.1, ("one", "arch"): 0.1, ("twenty", "one"): 2}
RNG = np.random.default_rng(1)
TABLES = [RNG.normal(0.03, 0.2, (SEEDS, TASKS)) for _ in range(ENDPOINTS)]


def one() -> None:
    """One endpoint's registered interval, its weights drawn anew."""
    crossed_bootstrap(TABLES[0], draw_weights(SEEDS, TASKS, RESAMPLES, 1), 0.95)


def twenty() -> None:
    """Twenty endpoints that share their weights."""
    weights = draw_weights(SEEDS, TASKS, RESAMPLES, 1)
    crossed_bootstraps(TABLES, weights, 0.95)


def by_scipy() -> None:
    """Scipy's vectorized bootstrap on two unpaired index vectors: the same reading."""
    table = TABLES[0]

    def mean(seeds: np.ndarray, tasks: np.ndarray, axis: int = -1) -> np.ndarray:
        del axis
        return table[seeds.astype(int)[..., :, None], tasks.astype(int)[..., None, :]].mean(axis=(-2, -1))

    data = (np.arange(float(SEEDS)), np.arange(float(TASKS)))
    rng = np.random.default_rng(1)
    stats.bootstrap(data, mean, vectorized=True, n_resamples=RESAMPLES, method="percentile", rng=rng)


def by_arch() -> None:
    """Arch's bootstrap of independent samples on seeds and tasks: the same reading."""
    table = TABLES[0]

    def mean(seeds: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        return table[seeds[:, None], tasks].mean()

    samples = IndependentSamplesBootstrap(np.arange(SEEDS), np.arange(TASKS), seed=np.random.default_rng(1))
    samples.conf_int(mean, reps=RESAMPLES, method="percentile", size=0.95)


def by_loop() -> None:
    """A numpy loop over resamples."""
    table, rng = TABLES[0], np.random.default_rng(1)
    means = [
        table[np.ix_(rng.integers(0, SEEDS, SEEDS), rng.integers(0, TASKS, TASKS))].mean()
        for _ in range(RESAMPLES)
    ]
    np.quantile(means, [0.025, 0.975])


def compare() -> None:
    """Print medians of several rounds and the ratios that have goals."""
    ways = {"one": one, "twenty": twenty, "scipy": by_scipy, "arch": by_arch, "loop": by_loop}
    ms = {name: 1000 * seconds for name, seconds in medians(ways, ROUNDS).items()}
    print(f"registered interval, {SEEDS} × {TASKS}, {RESAMPLES} resamples, medians of {ROUNDS} rounds")
    for name, figure in ms.items():
        print(f"  {name:8} {figure:9.2f} ms")
    for (name, other), most in GOALS.items():
        ratio = ms[name] / ms[other]
        print(f"  {f'{name} / {other}':13} {ratio:6.2f}  {verdict(ratio <= most, f'at most {most}')}")
