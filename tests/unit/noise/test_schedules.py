"""The two designs: what a group shares differs, what one rollout meets does not."""

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from toolkit.noise.draws import DESIGNS, Design, Draw, Schedule, group_seeds
from toolkit.noise.regimes import REGIMES
from toolkit.noise.tools import Tool
from toolkit.seeds import LIMIT, row_seed, run_seed, slot_seed

SIZE = 8
ROWS = 10_000
Seeds = Callable[[int], tuple[int, ...]]


def paired(row: int) -> tuple[int, ...]:
    return group_seeds("paired", row, SIZE)


def independent(row: int) -> tuple[int, ...]:
    return group_seeds("independent", row, SIZE)


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_a_paired_group_has_the_seed_of_its_row_and_an_independent_one_a_seed_each(size: int) -> None:
    assert group_seeds("paired", 17, size) == (17,) * size
    assert len(set(group_seeds("independent", 17, size))) == size


def test_a_larger_group_starts_with_the_seeds_of_a_smaller() -> None:
    assert group_seeds("independent", 17, 64)[:8] == group_seeds("independent", 17, 8)


@pytest.mark.parametrize("design", ["blocking", "", "Paired"])
def test_an_unknown_design_is_refused(design: Design) -> None:
    with pytest.raises(ValueError, match="there is no design"):
        group_seeds(design, 17, SIZE)


@pytest.mark.parametrize("row", [-1, LIMIT])
@pytest.mark.parametrize("design", DESIGNS)
def test_the_schedules_of_a_row_out_of_range_overflow(design: Design, row: int) -> None:
    with pytest.raises(OverflowError):
        [Schedule(seed) for seed in group_seeds(design, row, SIZE)]


# The first call's draw of each rollout: slot × row.


def first_draws(seeds: Seeds, rows: int = ROWS) -> list[list[Draw]]:
    """Return, for each slot, the draws of one key over the rows of a run."""
    run = run_seed("designs", 0)
    by_row = []
    for row in range(rows):
        group = seeds(row_seed(run, row // 64, row % 64))
        draws = {seed: Schedule(seed).draw("get_order", "O-10233", 0) for seed in set(group)}
        by_row.append([draws[seed] for seed in group])
    return [list(slot) for slot in zip(*by_row, strict=True)]


def gates(slots: list[list[Draw]]) -> np.ndarray:
    """Return the first word: slot × row."""
    return np.array([[draw.gate for draw in slot] for slot in slots])


def faults(slots: list[list[Draw]]) -> list[Counter[str]]:
    """Return how often each fault, or none, is met at each slot."""
    fault = REGIMES["faults_p025"].fault
    return [Counter(fault(Tool("any", "list"), 0, draw) or "none" for draw in slot) for slot in slots]


def same_word(one: np.ndarray, other: np.ndarray) -> float:
    """Return the two-sample Kolmogorov-Smirnov probability of two slots' first words."""
    return float(stats.ks_2samp(one, other).pvalue)


def same_faults(one: Counter[str], other: Counter[str]) -> float:
    """Return the chi-square probability of two slots' faults, type by type."""
    types = sorted(one | other)
    return float(stats.chi2_contingency([[one[t] for t in types], [other[t] for t in types]]).pvalue)


@pytest.fixture(scope="module")
def shared() -> list[list[Draw]]:
    return first_draws(paired)


@pytest.fixture(scope="module")
def own() -> list[list[Draw]]:
    return first_draws(independent)


def test_rollouts_of_an_independent_group_meet_unrelated_words(own: list[list[Draw]]) -> None:
    assert min(stats.pearsonr(slot, other).pvalue for slot, other in combinations(gates(own), 2)) > 1e-4


def test_rollouts_of_a_paired_group_meet_the_same_words(shared: list[list[Draw]]) -> None:
    words = gates(shared)
    assert (words == words[0]).all()


def test_no_independent_rollout_shares_a_seed_with_another_row() -> None:
    seeds = [*range(5000), *(seed for row in range(5000) for seed in independent(row))]
    assert len(set(seeds)) == len(seeds)


def test_a_rollout_meets_what_it_meets_in_the_other_design(shared, own) -> None:
    for slot in range(SIZE):
        paired_gates, other = gates([shared[slot], own[slot]])
        assert same_word(paired_gates, other) > 1e-4
        assert same_faults(*faults([shared[slot], own[slot]])) > 1e-4


def luckier_of_two(row: int) -> tuple[int, ...]:
    """Return seeds of a design that gives each rollout the better of two schedules: its law is another."""
    return tuple(
        max(
            (slot_seed(row, 2 * slot), slot_seed(row, 2 * slot + 1)),
            key=lambda seed: Schedule(seed).draw("get_order", "O-10233", 0).gate,
        )
        for slot in range(2)
    )


def test_the_tests_of_the_law_reject_a_broken_design(shared: list[list[Draw]]) -> None:
    other = first_draws(luckier_of_two, rows=2000)
    assert same_word(gates(shared)[0], gates(other)[0]) < 1e-12
    assert same_faults(faults(shared)[0], faults(other)[0]) < 1e-12
