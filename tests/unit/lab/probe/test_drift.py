"""Groups played for the drift; what is predicted from them, tests/golden/test_own_drift.py computes again."""

from functools import cache

import numpy as np
import pytest

from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.executors.executor import Executor
from toolkit.lab.policies.loglinear import Policy, untrained
from toolkit.lab.probe.predicted import Cell, Groups, play_groups, weighted_sums
from toolkit.lab.probing.drift import predicted_drift
from toolkit.noise.draws import DESIGNS

NAME, SIZE, V = "a test", 4, 2


@cache
def played(groups: int = 96) -> dict[str, Groups]:
    return play_groups(Policy(untrained(V), V), "faults_p025", SIZE, NAME, range(groups))


def test_what_cancels_is_zero_and_what_is_small_is_not() -> None:
    weights, vectors = np.array([[0.1, 0.2, -0.3]]), np.array([[1.0, 1e-9], [1.0, 0.0], [1.0, 0.0]])
    assert 0.1 + 0.2 - 0.3 != 0
    found = weighted_sums(weights, vectors)
    assert found[0, 0] == 0
    assert found[0, 1] == pytest.approx(1e-10)


def test_any_cut_gives_the_same_groups() -> None:
    policy = Policy(untrained(V), V)
    parts = [play_groups(policy, "faults_p025", SIZE, NAME, of) for of in (range(5), range(5, 12))]
    for design in DESIGNS:
        joined, whole = Groups.joined([part[design] for part in parts]), played()[design]
        np.testing.assert_allclose(joined.gradients, whole.gradients[:12], atol=1e-12)
        np.testing.assert_array_equal(joined.numbers, whole.numbers[:12])
        np.testing.assert_array_equal(joined.symbols, whole.symbols[:12])


def test_cells_share_what_was_played_and_processes_change_no_more_than_rounding() -> None:
    cells = [
        Cell("faults_p025", SIZE, V),
        Cell("faults_p025", SIZE, V, prompts_per_step=2),
        Cell(group_size=2),
    ]
    one = predicted_drift(cells, groups=60, seed=NAME, executor=Executor(places=1))
    told: list[str] = []
    more = Executor(places=2, watch=lambda done, total, doing: told.append(f"{done}/{total} {doing}"))
    # Matrix products differ in the last digits with the number of threads.
    for mine, other in zip(one, predicted_drift(cells, groups=60, seed=NAME, executor=more), strict=True):
        assert mine.steps == other.steps
        # Which coordinates are strongest may be a tie of so few groups.
        for name in ("trace", "along", "drift"):
            assert other.ratios[name].value == pytest.approx(mine.ratios[name].value, rel=1e-9)
    assert len(told) == 2
    assert [prediction.cell for prediction in one] == cells


@pytest.mark.parametrize(
    ("change", "groups", "error"),
    [
        ({"regime": "rain"}, 60, UsageError),
        ({"optimizer": "lion"}, 60, UsageError),
        ({"prompts_per_step": 0}, 60, UsageError),
        ({}, 8, IncompleteError),
        ({"prompts_per_step": 24}, 40, IncompleteError),
    ],
)
def test_what_cannot_be_predicted_says_so(change, groups, error) -> None:
    cell = Cell(**{"group_size": 2, "surface_tokens": 0, "prompts_per_step": 1, **change})
    with pytest.raises(error) as raised:
        predicted_drift([cell], groups=groups)
    assert raised.value.expected
