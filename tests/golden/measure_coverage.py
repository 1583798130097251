"""Measure how often intervals cover the truth: write `coverage.json`, print the tables of the README.

Run as `python -m tests.golden.measure_coverage`: a minute on one core.

In the first table, the differences are δ + a_s + b_t + e_st, all normal, on 64 tasks; seeds and tasks are
drawn anew in every simulation, so that the truth to be covered is δ, the mean over the population of both.
The deviations:

- seeds, 0.034: that of the published study's three seed differences of the main contrast, 0.054, -0.002 and
  0.059. It still holds a little of the residual.
- residual, 0.16: a task's difference is that of two success rates over 2 schedules × 6 steps; at a success
  rate near 0.8, sqrt(2 × 0.8 × 0.2 / 12) = 0.16.
- tasks, 0.1 or 0: what a task adds to the difference for every seed is taken to be smaller than the residual.
  With 64 tasks it moves the mean by 0.0125. At 0 the seeds dominate, and Student's t over seeds is exact.

In the second, they are counts of episodes, one on each task for each arm and seed. A task's success rate is
drawn anew in every simulation, uniform around one half with a standard deviation of 0.25, or as much less as
keeps every rate within [0, 1]. The arms lie half a gap above and below it: 0.06, plus what a seed adds to it,
normal, plus what a task adds, uniform. One simulation shows whether an interval covers 0.06, and whether it
finds it: lies above zero.
"""

import math
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.golden.stored import error, markdown, percents, read, write
from toolkit.estimators import (
    bca_interval,
    clustered_bca_interval,
    crossed_bootstraps,
    draw_weights,
    t_quantile,
)
from toolkit.estimators.bootstrap import BootstrapWeights
from toolkit.structs import replace

TRUTH = 0.03
SEED_DEVIATION, RESIDUAL_DEVIATION = 0.034, 0.16
TASK_DEVIATIONS = (0.1, 0.0)
SEEDS = (2, 3, 5, 10, 20)
TASKS, RESAMPLES, SIMULATIONS, BLOCK = 64, 2000, 2000, 100
RNG_SEED = 20_260
EFFECT, TASK_RATE_DEVIATION, FOUR_DEVIATIONS = 0.06, 0.25, 4
FILE = Path(__file__).with_name("coverage.json")

Ends = np.ndarray  # lower and upper ends, shape (2, E)


@dataclass(frozen=True)
class Cell:
    """How often an interval covered the truth."""

    interval: str  # its name, a key of `INTERVALS`
    level: float  # nominal level
    task_deviation: float  # standard deviation of the tasks' part of the differences
    seeds: int  # seed pairs
    simulations: int  # intervals made
    covered: int  # intervals that held the truth


@dataclass(frozen=True)
class Played:
    """Arms that played episodes: what was simulated, and what an interval made of it."""

    seeds: int  # seeds, tasks: of each arm; an episode for each
    tasks: int
    seed_deviation: float  # standard deviation of what a seed adds to the gap
    task_deviation: float  # of what a task adds to it
    interval: str  # its name, a key of `INTERVALS`; at 95 %
    simulations: int = 0  # intervals made
    covered: int = 0  # intervals that held the gap of 0.06
    found: int = 0  # intervals above zero


def play(design: Played, block: int) -> np.ndarray:
    """Return one block of simulated differences of counts, whole numbers, shape (E, S, T)."""
    rng = np.random.default_rng([RNG_SEED, DESIGNS.index(_plain(design)), block])
    shape = (BLOCK, design.seeds, design.tasks)
    tasks, seeds = design.task_deviation * math.sqrt(3), design.seed_deviation
    gaps = (
        EFFECT
        + seeds * rng.standard_normal((BLOCK, design.seeds, 1))
        + rng.uniform(-tasks, tasks, (BLOCK, 1, design.tasks))
    )
    room = 0.5 - (EFFECT + FOUR_DEVIATIONS * seeds + tasks) / 2
    half = min(math.sqrt(3) * TASK_RATE_DEVIATION, room)
    rates = 0.5 + rng.uniform(-half, half, (BLOCK, 1, design.tasks))
    first, second = (rng.random(shape) < np.clip(rates + side * gaps / 2, 0, 1) for side in (1, -1))
    return first.astype(float) - second


def simulate(task_deviation: float, seeds: int, block: int) -> np.ndarray:
    """Return one block of simulated differences, shape (E, S, T)."""
    rng = np.random.default_rng(_entropy(task_deviation, seeds, block, 0))
    return (
        TRUTH
        + rng.normal(0, SEED_DEVIATION, (BLOCK, seeds, 1))
        + rng.normal(0, 1, (BLOCK, 1, TASKS)) * task_deviation
        + rng.normal(0, RESIDUAL_DEVIATION, (BLOCK, seeds, TASKS))
    )


def crossed(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """The registered interval, of sums as `counted_bootstrap` has it: those of counts are whole."""
    times = _times(weights)
    ends = np.array([(i.low, i.high) for i in crossed_bootstraps(tables, times, level)]).T
    return ends / tables[0].size


def bca(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """The registered resamples, corrected for bias and skewness."""
    return np.array([(i.low, i.high) for i in (bca_interval(d, weights, level) for d in tables)]).T


def nested(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """Tasks drawn anew for every drawn seed: `nested_bootstrap`, with resamples shared by the block."""
    sums = tables.reshape(len(tables), -1) @ _nested_times(weights)
    return _percentiles(sums, level) / tables[0].size


def seeds_only(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """Seeds resampled, tasks averaged."""
    return _percentiles(tables.sum(axis=2) @ _times(weights).seeds.T, level) / tables[0].size


def student(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """Student's t over seeds: `t_interval`, for a block at once."""
    del weights
    means = tables.mean(axis=2)
    seeds = means.shape[1]
    reach = t_quantile((1 + level) / 2, seeds - 1) * means.std(axis=1, ddof=1) / math.sqrt(seeds)
    return means.mean(axis=1) + np.array([[-1], [1]]) * reach


def student_tasks(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """Student's t over tasks: `clustered_t_interval`, for a block at once."""
    return student(tables.transpose(0, 2, 1), weights, level)


def bca_tasks(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """Tasks resampled, seeds averaged, corrected for bias and skewness; none where tasks are all alike."""
    drawn = _times(weights).tasks
    made = [clustered_bca_interval(d.sum(axis=0), tables.shape[1], drawn, level) for d in tables]
    return np.array([(i.low, i.high) if i else (math.nan, math.nan) for i in made]).T


INTERVALS: dict[str, Callable[[np.ndarray, BootstrapWeights, float], Ends]] = {
    made.__name__: made for made in (crossed, nested, seeds_only, student, bca, student_tasks, bca_tasks)
}
COLUMNS = [
    ("crossed percentile, 95 %", "crossed", 0.95),
    ("crossed percentile, 90 %", "crossed", 0.9),
    ("crossed BCa, 95 %", "bca", 0.95),
    ("nested percentile, 95 %", "nested", 0.95),
    ("seeds-only percentile, 95 %", "seeds_only", 0.95),
    ("Student's t over seeds, 95 %", "student", 0.95),
    ("Student's t over tasks, 95 %", "student_tasks", 0.95),
    ("BCa over tasks, 95 %", "bca_tasks", 0.95),
]
SIZES = ((5, 200), (8, 61), (3, 50), (1, 200))
SPREADS = ((0.0, 0.0), (0.03, 0.0), (0.0, 0.1), (0.03, 0.1))
OF_EPISODES = {
    "student_tasks": "t over tasks",
    "bca_tasks": "bca bootstrap",
    "student": "t over seeds",
    "crossed": "percentile bootstrap, crossed",
    "nested": "percentile bootstrap, nested",
    "seeds_only": "seed bootstrap",
}
"""Every method that can be registered, as a registration names it."""
OF_ONE_SEED = ("student_tasks", "bca_tasks")
DESIGNS = [Played(*size, *spreads, "") for size in SIZES for spreads in SPREADS]


def measure_played(design: Played, intervals: Collection[str] = tuple(OF_EPISODES)) -> list[Played]:
    """Return a design's cells: every interval that its seeds allow, on the same simulations."""
    chosen = [name for name in intervals if design.seeds > 1 or name in OF_ONE_SEED]
    covered, found = (dict.fromkeys(chosen, 0) for _ in range(2))
    for block in range(SIMULATIONS // BLOCK):
        tables = play(design, block)
        entropy = (RNG_SEED * 100 + DESIGNS.index(_plain(design))) * 1000 + block
        seeds = draw_weights(max(design.seeds, 2), design.tasks, RESAMPLES, entropy)
        weights = seeds if design.seeds > 1 else replace(seeds, seeds=np.ones((RESAMPLES, 1)))
        for name in chosen:
            low, high = INTERVALS[name](tables, weights, 0.95)
            covered[name] += int(((low <= EFFECT) & (high >= EFFECT)).sum())
            found[name] += int((low > 0).sum())
    return [
        replace(_plain(design), interval=n, simulations=SIMULATIONS, covered=covered[n], found=found[n])
        for n in chosen
    ]


def _plain(design: Played) -> Played:
    return Played(design.seeds, design.tasks, design.seed_deviation, design.task_deviation, "")


def measure(task_deviation: float, seeds: int, columns: list[tuple[str, str, float]]) -> list[Cell]:
    """Return a row's cells: every interval on the same simulations.

    Resamples are shared by a block of simulations, not by all: their own noise averages out over the blocks.
    """
    covered = np.zeros(len(columns), dtype=int)
    for block in range(SIMULATIONS // BLOCK):
        tables = simulate(task_deviation, seeds, block)
        weights = draw_weights(seeds, TASKS, RESAMPLES, _entropy(task_deviation, seeds, block, 1))
        for number, (_, interval, level) in enumerate(columns):
            low, high = INTERVALS[interval](tables, weights, level)
            covered[number] += int(((low <= TRUTH) & (high >= TRUTH)).sum())
    return [
        Cell(interval, level, task_deviation, seeds, SIMULATIONS, count)
        for (_, interval, level), count in zip(columns, covered.tolist(), strict=True)
    ]


def table(cells: list[Cell]) -> str:
    """Return the table of the README, its caption first."""
    by_cell = {(c.task_deviation, c.seeds, c.interval, c.level): c for c in cells}
    nominal, middling = error(SIMULATIONS, 0.95, 0.75)
    caption = (
        f"Coverage of the true mean difference in {SIMULATIONS:,} simulations a cell, in percent. "
        f"Monte Carlo standard error: {nominal} points at 95 %, {middling} at 75 %."
    )
    rows = [
        [
            f"{deviation:g}",
            seeds,
            *(percents(by_cell[deviation, seeds, *of], "covered") for _, *of in COLUMNS),
        ]
        for deviation in TASK_DEVIATIONS
        for seeds in SEEDS
    ]
    heads = ["σ of tasks", "seeds", *(title for title, _, _ in COLUMNS)]
    return "\n".join([caption, "", *markdown(heads, rows)])


def played_table(cells: list[Played]) -> str:
    """Return the table of what finds an effect, its caption first."""
    by_cell = {(_plain(c), c.interval): c for c in cells}
    nominal, middling = error(SIMULATIONS, 0.95, 0.5)
    caption = (
        f"Two arms, an episode on each task for each seed, a true gap of {100 * EFFECT:g} points: how often "
        f"a 95 % interval covers the gap / finds it, in percent of {SIMULATIONS:,} simulations a cell. Monte "
        f"Carlo standard error: {nominal} points at 95 %, {middling} at 50 %."
    )
    rows = [
        [
            *(f"{one.seeds} × {one.tasks}", f"{one.seed_deviation:g}", f"{one.task_deviation:g}"),
            *(percents(by_cell.get((one, name)), "covered", "found") for name in OF_EPISODES),
        ]
        for one in DESIGNS
    ]
    heads = ["seeds × tasks", "σ of seeds", "σ of tasks", *(f"`{method}`" for method in OF_EPISODES.values())]
    return "\n".join([caption, "", *markdown(heads, rows)])


def tables(differences: list[Cell], episodes: list[Played]) -> tuple[str, str]:
    """Return both tables."""
    return table(differences), played_table(episodes)


def stored() -> tuple[list[Cell], list[Played]]:
    """Return the cells of both tables."""
    differences, episodes = read(FILE, differences=Cell, episodes=Played)
    return differences, episodes


def _entropy(task_deviation: float, seeds: int, block: int, stream: int) -> int:
    """Return an own explicit seed for every block and stream."""
    model = TASK_DEVIATIONS.index(task_deviation)
    return (((RNG_SEED * 10 + model) * 100 + seeds) * 1000 + block) * 10 + stream


def _times(weights: BootstrapWeights) -> BootstrapWeights:
    """Return how often seeds and tasks occur, in place of their weights."""
    seeds, tasks = (np.rint(w * w.shape[1]) for w in (weights.seeds, weights.tasks))
    return BootstrapWeights(seeds, tasks, weights.rng_seed)


def _nested_times(weights: BootstrapWeights) -> np.ndarray:
    """Return how often each seed and task occurs, shape (S·T, B)."""
    rng = np.random.default_rng([weights.rng_seed, 2])
    (resamples, seeds), tasks = weights.seeds.shape, weights.tasks.shape[1]
    within = rng.multinomial(tasks, np.full(tasks, 1 / tasks), (resamples, seeds)).astype(float)
    drawn = rng.integers(0, seeds, (resamples, seeds))
    chosen = np.eye(seeds)[drawn]  # resample, slot, seed
    return np.einsum("bks,bkt->stb", chosen, within, optimize=True).reshape(seeds * tasks, resamples)


def _percentiles(means: np.ndarray, level: float) -> Ends:
    return np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=1)


def main() -> None:
    """Measure, write, print."""
    cells: list[Cell] = []
    for deviation in TASK_DEVIATIONS:
        for seeds in SEEDS:
            print(f"σ of tasks {deviation:g}, {seeds} seeds", file=sys.stderr)
            cells += measure(deviation, seeds, COLUMNS)
    played: list[Played] = []
    for design in DESIGNS:
        print(design, file=sys.stderr)
        played += measure_played(design)
    write(FILE, {"differences": cells, "episodes": played})
    print(*tables(cells, played), sep="\n\n")


if __name__ == "__main__":
    main()
