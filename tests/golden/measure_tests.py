"""Measure size and power of the registered tests: writes `size_and_power.json`, prints the README's tables.

Run as `python -m tests.golden.measure_tests`.

Two arms play every task once, under one schedule. A task's rate of success is uniform from 0.2 to 0.8, the
first arm's higher by the effect of its seed, which is normal. Seeds and tasks are drawn anew in every study.

- `size`: without an effect on average; `power`: with one of 0.1.
- seeds' effects deviate by 0.034, as in `measure_coverage`, or not at all. Where they do, it is not by chance
  which sign the difference of a task has: all tasks of a seed share its effect. The null hypothesis of a test
  over tasks does not hold then, and its size shows it.
- a family: five studies of 8 seeds on 61 tasks, each with its own p over tasks; none has an effect, or two of
  them have.
- equivalence at a margin of 0.1, by Student's 90% interval over seeds: its size is how often it is found with
  an effect of 0.1, its power how often without any.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.golden.stored import markdown, percents, read, write
from toolkit.estimators import (
    benjamini_hochberg,
    holm,
    mcnemar_test,
    sign_flip_test,
    t_interval,
    wilcoxon_test,
)

DESIGNS = ((1, 200), (5, 200), (8, 61), (3, 50))  # seeds, tasks
SEED_DEVIATIONS = (0.0, 0.034)
EFFECT = MARGIN = 0.1
LOWEST, HIGHEST = 0.2, 0.8
LEVEL, INTERVAL_LEVEL = Fraction(1, 20), 0.9
SIMULATIONS, RNG_SEED = 2000, 20_262
FAMILY, WITH_EFFECT = 5, 2
FILE = Path(__file__).with_name("size_and_power.json")

Differences = NDArray[np.int64]  # of a study, shape (S, T): -1, 0 or 1


@dataclass(frozen=True)
class Cell:
    """How often a test rejected at 5%."""

    test: str  # its name
    seeds: int  # seeds, tasks: the design
    tasks: int
    seed_deviation: float  # standard deviation of the seeds' effects
    effect: float  # mean effect
    simulations: int  # studies
    rejected: int  # those in which it did; of equivalence, in which it was found


@dataclass(frozen=True)
class Families:
    """What became of some families."""

    method: str  # of adjustment
    with_effect: int  # how many of the tests have one
    families: int  # how many there were
    any_false: int  # those in which a test without an effect was rejected
    false_share: float  # mean share of such tests among the rejected, which is 0 where none is
    found: float  # mean share of the tests with an effect that were rejected


def study(seeds: int, tasks: int, seed_deviation: float, effect: float, number: int) -> Differences:
    """Return the differences of one simulated study."""
    rng = np.random.default_rng(
        (RNG_SEED, seeds, tasks, round(1000 * seed_deviation), round(1000 * effect), number)
    )
    rates = rng.uniform(LOWEST, HIGHEST, tasks)
    lift = effect + seed_deviation * rng.standard_normal((seeds, 1))
    first, second = rng.random((2, seeds, tasks)) < np.clip(np.array([rates + lift, rates + 0 * lift]), 0, 1)
    return first.astype(np.int64) - second


def equivalent(differences: Differences) -> bool:
    """Whether Student's interval over seeds lies within the margin."""
    low, high = t_interval(differences.mean(axis=1).tolist(), INTERVAL_LEVEL)
    return low >= -MARGIN and high <= MARGIN


def over_tasks(differences: Differences) -> Fraction:
    """Return p of the sign flip over tasks."""
    return sign_flip_test(differences.sum(axis=0).tolist()).p_value


TESTS: dict[str, Callable[[Differences], bool]] = {
    "sign flip over seeds": lambda d: sign_flip_test(d.sum(axis=1).tolist()).p_value <= LEVEL,
    "Wilcoxon over seeds": lambda d: wilcoxon_test(d.sum(axis=1).tolist()).p_value <= LEVEL,
    "sign flip over tasks": lambda d: over_tasks(d) <= LEVEL,
    "Wilcoxon over tasks": lambda d: wilcoxon_test(d.sum(axis=0).tolist()).p_value <= LEVEL,
    "McNemar": lambda d: mcnemar_test(d[0].tolist()).p_value <= LEVEL,
    "equivalence": equivalent,
}
ADJUSTMENTS = {"holm": holm, "benjamini-hochberg": benjamini_hochberg}


def applies(test: str, seeds: int) -> bool:
    """Whether a test can be made of so many seeds."""
    return seeds == 1 if test == "McNemar" else seeds > 1 or test.endswith("over tasks")


def null(test: str, seed_deviation: float) -> bool:
    """Whether the test's null hypothesis is one of the mean over seeds, whatever the seeds' effects."""
    return seed_deviation == 0 or test.endswith("over seeds")


def measure(
    seeds: int, tasks: int, seed_deviation: float, effect: float, tests: Iterable[str] = TESTS
) -> list[Cell]:
    """Return a design's cells: every test on the same studies."""
    chosen = [test for test in tests if applies(test, seeds)]
    rejected = dict.fromkeys(chosen, 0)
    for number in range(SIMULATIONS):
        differences = study(seeds, tasks, seed_deviation, effect, number)
        for test in chosen:
            rejected[test] += TESTS[test](differences)
    return [
        Cell(test, seeds, tasks, seed_deviation, effect, SIMULATIONS, count)
        for test, count in rejected.items()
    ]


def families(with_effect: int, first: int = 0, number: int = SIMULATIONS) -> list[Families]:
    """Return what became of some families, adjusted each way."""
    false, shares, found = ({method: [] for method in ADJUSTMENTS} for _ in range(3))
    for at in range(first, first + number):
        effects = [EFFECT] * with_effect + [0.0] * (FAMILY - with_effect)
        own = [study(8, 61, 0.0, e, SIMULATIONS + FAMILY * at + place) for place, e in enumerate(effects)]
        p = [over_tasks(differences) for differences in own]
        for method, adjust in ADJUSTMENTS.items():
            rejected = [adjusted <= LEVEL for adjusted in adjust(p)]
            wrong = sum(rejected[with_effect:])
            false[method].append(wrong > 0)
            shares[method].append(wrong / max(1, sum(rejected)))
            found[method].append(sum(rejected[:with_effect]) / max(1, with_effect))
    return [
        Families(m, with_effect, number, sum(false[m]), sum(shares[m]) / number, sum(found[m]) / number)
        for m in ADJUSTMENTS
    ]


def table(cells: list[Cell], of_families: list[Families]) -> str:
    """Return the tables of the README."""
    by_cell = {(c.test, c.seeds, c.tasks, c.seed_deviation, c.effect): c for c in cells}
    rows = []
    for seeds, tasks in DESIGNS:
        for deviation in SEED_DEVIATIONS:
            row = [f"{seeds} × {tasks}", f"{deviation:g}"]
            for test in TESTS:
                size, power = (by_cell.get((test, seeds, tasks, deviation, e)) for e in (0.0, EFFECT))
                both = (power, size) if test == "equivalence" else (size, power)
                row.append(" / ".join(percents(cell, "rejected") for cell in both) if size else "-")
            rows.append(row)
    adjusted = [
        [
            *(f.method, f"{f.with_effect} of {FAMILY}", f"{100 * f.any_false / f.families:.1f}"),
            *(f"{100 * f.false_share:.1f}", f"{100 * f.found:.1f}" if f.with_effect else "-"),
        ]
        for f in of_families
    ]
    heads = ("adjusted by", "tests with an effect", "any false", "false among rejected", "found")
    lines = markdown(["seeds × tasks", "σ of seeds", *TESTS], rows)
    return "\n".join([*lines, "", *markdown(heads, adjusted)])


def stored() -> tuple[list[Cell], list[Families]]:
    """Return what the file holds."""
    cells, of_families = read(FILE, cells=Cell, families=Families)
    return cells, of_families


def main() -> None:
    """Measure, write, print."""
    cells: list[Cell] = []
    for seeds, tasks in DESIGNS:
        for deviation in SEED_DEVIATIONS:
            for effect in (0.0, EFFECT):
                print(f"{seeds} × {tasks}, σ of seeds {deviation:g}, effect {effect:g}", file=sys.stderr)
                cells += measure(seeds, tasks, deviation, effect)
    of_families = [one for with_effect in (0, WITH_EFFECT) for one in families(with_effect)]
    write(FILE, {"cells": cells, "families": of_families})
    print(table(cells, of_families))


if __name__ == "__main__":
    main()
