"""What a draw makes of a call and of a grade: fault types by kind of tool, regimes, and groups of schedules.

`tests/properties/test_draws.py` says what holds for every draw and rate; here stand the numbers.
"""

from itertools import accumulate, pairwise, product
from typing import get_args

import pytest

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.noise.draws import DESIGNS, Design, Draw, Schedule, group_seeds
from toolkit.noise.regimes import ABOUT, REGIMES, Mixture, kept, retry_after
from toolkit.noise.tools import APPLIES, Fault, Kind, Tool
from toolkit.registers import columns
from toolkit.seeds import LIMIT, slot_seed

NOISY: tuple[Kind, ...] = ("read", "list", "write")
# Where those can happen that cannot happen to every tool.
ONLY: dict[Fault, set[Kind]] = {
    "stale_read": {"read", "list"},
    "truncation": {"list"},
    "timeout_after_commit": {"write"},
    "field_dropout": {"read", "list"},
}
DEFAULT: dict[Fault, int] = {
    "transient": 45,
    "rate_limit": 15,
    "outage": 10,
    "stale_read": 15,
    "truncation": 15,
}
OUTAGE_FREE: dict[Fault, int] = {"transient": 3, "rate_limit": 1, "stale_read": 1, "truncation": 1}
FAULTY: dict[str, tuple[float, dict[Fault, int]]] = {
    "faults_p010": (0.10, DEFAULT),
    "faults_p025": (0.25, DEFAULT),
    "faults_p025_outage_free": (0.25, OUTAGE_FREE),
    "faults_p025_outage_heavy": (0.25, DEFAULT | {"outage": 40}),
    "held_out_types": (0.25, {"timeout_after_commit": 1, "field_dropout": 1}),
}
FLIPPING = {"flips_q005": 0.05, "flips_q010": 0.10}
LOWEST, HIGHEST = Draw(bytes(32)), Draw(b"\xff" * 32)
CLOSE = 1e-9


def drawn(gate: float = 0.0, of_type: float = 0.0, magnitude: float = 0.0) -> Draw:
    words = (int(unit * LIMIT).to_bytes(8, "big") for unit in (gate, of_type, magnitude))
    return Draw(b"".join(words) + bytes(8))


def test_a_fault_applies_where_it_can_happen() -> None:
    assert set(APPLIES) == set(get_args(Kind)) == {tool.kind for tool in TOOLS.values()}
    assert set(ABOUT) == set(get_args(Fault))
    for fault in get_args(Fault):
        assert {kind for kind in APPLIES if fault in APPLIES[kind]} == ONLY.get(fault, set(NOISY))


def test_the_regimes_are_those_of_the_registers() -> None:
    assert tuple(REGIMES) == columns.REGIMES
    assert REGIMES.keys() == {"clean", "challenge"} | FAULTY.keys() | FLIPPING.keys()
    assert {name for name, regime in REGIMES.items() if regime.ceiling} == {"challenge"} | FAULTY.keys()


@pytest.mark.parametrize(("name", "kind"), [*product(FAULTY, NOISY)])
def test_weights_that_apply_divide_the_draws_below_the_rate(name: str, kind: Kind) -> None:
    """In the order of `APPLIES`; no other draw makes a fault."""
    regime, (rate, weights), tool = REGIMES[name], FAULTY[name], Tool("any", kind)
    there = [fault for fault in APPLIES[kind] if fault in weights]
    total = sum(weights[fault] for fault in there)
    ends = [0.0, *(reached / total for reached in accumulate(weights[fault] for fault in there))]
    for fault, (low, high) in zip(there, pairwise(ends), strict=True):
        met = {regime.fault(tool, 0, drawn(rate - CLOSE, at)) for at in (low + CLOSE, high - CLOSE)}
        assert met == {fault}
        assert regime.mixture is not None
        assert regime.mixture.share(kind, fault) == pytest.approx(high - low)
    assert regime.fault(tool, 0, drawn(rate + CLOSE)) is None


@pytest.mark.parametrize(("regime", "repeat"), [*product(REGIMES, (0, 1))])
def test_a_control_tool_never_faults(regime: str, repeat: int) -> None:
    controls = [tool for tool in TOOLS.values() if tool.kind == "control"]
    assert [REGIMES[regime].fault(tool, repeat, LOWEST) for tool in controls] == [None] * len(controls)
    mixture = REGIMES[regime].mixture
    assert mixture is None or not any(mixture.share("control", fault) for fault in get_args(Fault))


@pytest.mark.parametrize("name", REGIMES)
def test_a_success_flips_where_the_grader_s_draw_is_below_the_rate(name: str) -> None:
    schedules = [Schedule(seed) for seed in range(400)]
    flipped = [schedule.seed for schedule in schedules if REGIMES[name].flips(schedule)]
    rate = FLIPPING.get(name, 0.0)
    assert flipped == [schedule.seed for schedule in schedules if schedule.grader().gate < rate]
    assert bool(flipped) == bool(rate)


@pytest.mark.parametrize("weights", [{}, {"transient": 0}, {"transient": 1, "outage": -1}])
def test_a_mixture_needs_positive_weights(weights: dict[Fault, int]) -> None:
    with pytest.raises(ValueError, match="needs positive weights"):
        Mixture(weights)


def test_strengths_are_equal_parts_of_their_word() -> None:
    limits = [retry_after(drawn(magnitude=part / 5 + off)) for part in range(5) for off in (0.01, 0.19)]
    assert limits == [seconds for seconds in (1, 2, 3, 4, 5) for _ in range(2)]
    left = [kept(drawn(magnitude=part / 4 + off), 5) for part in range(4) for off in (0.0, 0.24)]
    assert left == [items for items in (1, 2, 3, 4) for _ in range(2)]
    assert [kept(draw, items) for draw in (LOWEST, HIGHEST) for items in (1, 2)] == [1] * 4


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_a_paired_group_has_the_seed_of_its_row_and_an_independent_one_a_seed_each(size: int) -> None:
    assert group_seeds("paired", 17, size) == (17,) * size
    assert group_seeds("independent", 17, size) == tuple(slot_seed(17, slot) for slot in range(size))


def test_what_is_no_group_is_refused() -> None:
    wrong: list[tuple[Design, int]] = [("blocking", 8), ("Paired", 8), ("paired", 0)]  # type: ignore[list-item]
    for design, size in wrong:
        with pytest.raises(ValueError, match=r"there is no design|at least one rollout"):
            group_seeds(design, 17, size)
    for design, row in product(DESIGNS, (-1, LIMIT)):
        with pytest.raises(OverflowError):
            [Schedule(seed) for seed in group_seeds(design, row, 8)]
