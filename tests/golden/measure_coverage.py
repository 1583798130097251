"""Measure how often intervals cover the truth: writes `coverage.json`, and prints the table of the README.

Run as `python -m tests.golden.measure_coverage`.

The differences are δ + a_s + b_t + e_st, all normal, on 64 tasks; seeds and tasks are drawn anew in every
simulation, so that the truth to be covered is δ, the mean over the population of both. The deviations:

- seeds, 0.034: that of the published study's three seed differences of the main contrast, 0.054, -0.002 and
  0.059. It still holds a little of the residual.
- residual, 0.16: a task's difference is that of two success rates over 2 schedules × 6 steps; at a success
  rate near 0.8, sqrt(2 × 0.8 × 0.2 / 12) = 0.16.
- tasks, 0.1 or 0: what a task adds to the difference for every seed is taken to be smaller than the residual.
  With 64 tasks it moves the mean by 0.0125. At 0 the seeds dominate, and Student's t over seeds is exact.
"""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from toolkit.estimators import bca_interval, crossed_bootstraps, draw_weights, t_quantile
from toolkit.estimators.bootstrap import BootstrapWeights

TRUTH = 0.03
SEED_DEVIATION, RESIDUAL_DEVIATION = 0.034, 0.16
TASK_DEVIATIONS = (0.1, 0.0)
SEEDS = (2, 3, 5, 10, 20)
TASKS, RESAMPLES, SIMULATIONS, BLOCK = 64, 2000, 2000, 100
RNG_SEED = 20_260
FILE = Path(__file__).with_name("coverage.json")

Ends = np.ndarray  # lower and upper ends, shape (2, E)


@dataclass(frozen=True)
class Cell:
    """How often an interval covered the truth.

    Args:
        interval: its name, a key of `INTERVALS`.
        level: nominal level.
        task_deviation: standard deviation of the tasks' part of the differences.
        seeds: seed pairs.
        simulations: intervals made.
        covered: intervals that held the truth.
    """

    interval: str
    level: float
    task_deviation: float
    seeds: int
    simulations: int
    covered: int


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
    """The registered interval."""
    return np.array([(i.low, i.high) for i in crossed_bootstraps(tables, weights, level)]).T


def bca(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """The registered resamples, corrected for bias and skewness."""
    return np.array([(i.low, i.high) for i in (bca_interval(d, weights, level) for d in tables)]).T


def nested(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """Tasks drawn anew for every drawn seed: `nested_bootstrap`, with resamples shared by the block."""
    return _percentiles(tables.reshape(len(tables), -1) @ _nested_weights(tables.shape[1], weights), level)


def seeds_only(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """Seeds resampled, tasks averaged."""
    return _percentiles(tables.mean(axis=2) @ weights.seeds.T, level)


def student(tables: np.ndarray, weights: BootstrapWeights, level: float) -> Ends:
    """Student's t over seeds: `t_interval`, for a block at once."""
    del weights
    means = tables.mean(axis=2)
    seeds = means.shape[1]
    reach = t_quantile((1 + level) / 2, seeds - 1) * means.std(axis=1, ddof=1) / math.sqrt(seeds)
    return means.mean(axis=1) + np.array([[-1], [1]]) * reach


INTERVALS: dict[str, Callable[[np.ndarray, BootstrapWeights, float], Ends]] = {
    "crossed": crossed,
    "nested": nested,
    "seeds_only": seeds_only,
    "student": student,
    "bca": bca,
}
COLUMNS = [
    ("crossed percentile, 95 %", "crossed", 0.95),
    ("crossed percentile, 90 %", "crossed", 0.9),
    ("crossed BCa, 95 %", "bca", 0.95),
    ("nested percentile, 95 %", "nested", 0.95),
    ("seeds-only percentile, 95 %", "seeds_only", 0.95),
    ("Student's t over seeds, 95 %", "student", 0.95),
]


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
    simulations = cells[0].simulations
    nominal, middling = (100 * math.sqrt(p * (1 - p) / simulations) for p in (0.95, 0.75))
    caption = (
        f"Coverage of the true mean difference in {simulations:,} simulations a cell, in percent. "
        f"Monte Carlo standard error: {nominal:.1f} points at 95 %, {middling:.1f} at 75 %."
    )
    lines = [
        caption,
        "",
        f"| σ of tasks | seeds | {' | '.join(title for title, _, _ in COLUMNS)} |",
        f"| --- | --- |{' --- |' * len(COLUMNS)}",
    ]
    for deviation in TASK_DEVIATIONS:
        for seeds in SEEDS:
            row = [by_cell[deviation, seeds, interval, level] for _, interval, level in COLUMNS]
            rates = " | ".join(f"{100 * cell.covered / cell.simulations:.1f}" for cell in row)
            lines.append(f"| {deviation:g} | {seeds} | {rates} |")
    return "\n".join(lines)


def stored() -> list[Cell]:
    """Return the cells of the file."""
    return [Cell(**cell) for cell in json.loads(FILE.read_text(encoding="utf-8"))]


def _entropy(task_deviation: float, seeds: int, block: int, stream: int) -> int:
    """Return an own explicit seed for every block and stream."""
    model = TASK_DEVIATIONS.index(task_deviation)
    return (((RNG_SEED * 10 + model) * 100 + seeds) * 1000 + block) * 10 + stream


def _nested_weights(seeds: int, weights: BootstrapWeights) -> np.ndarray:
    """Return the weight of each seed and task, shape (S·T, B)."""
    rng = np.random.default_rng([weights.rng_seed, 2])
    within = rng.multinomial(TASKS, np.full(TASKS, 1 / TASKS), (RESAMPLES, seeds)) / (TASKS * seeds)
    drawn = rng.integers(0, seeds, (RESAMPLES, seeds))
    chosen = np.eye(seeds)[drawn]  # resample, slot, seed
    return np.einsum("bks,bkt->stb", chosen, within, optimize=True).reshape(seeds * TASKS, RESAMPLES)


def _percentiles(means: np.ndarray, level: float) -> Ends:
    return np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=1)


def main() -> None:
    """Measure, write, print."""
    cells: list[Cell] = []
    for deviation in TASK_DEVIATIONS:
        for seeds in SEEDS:
            print(f"σ of tasks {deviation:g}, {seeds} seeds", file=sys.stderr)
            cells += measure(deviation, seeds, COLUMNS)
    lines = ",\n  ".join(json.dumps(asdict(cell)) for cell in cells)
    FILE.write_text(f"[\n  {lines}\n]\n", encoding="utf-8")
    print(table(cells))


if __name__ == "__main__":
    main()
