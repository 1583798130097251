"""Which faults a kind of tool can meet, in which shares, and how strong they are."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import get_args

import pytest
from scipy import stats

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.noise.draws import Draw, Schedule
from toolkit.noise.faults import ABOUT, Mixture, kept, retry_after
from toolkit.noise.regimes import DEFAULT, HELD_OUT, OUTAGE_FREE, OUTAGE_HEAVY
from toolkit.noise.tools import APPLIES, Fault, Kind

MIXTURES = {
    "default": DEFAULT,
    "outage_free": OUTAGE_FREE,
    "outage_heavy": OUTAGE_HEAVY,
    "held_out": HELD_OUT,
}
NOISY: tuple[Kind, ...] = ("read", "list", "write")
LOWEST, HIGHEST = Draw(bytes(32)), Draw(b"\xff" * 32)


@pytest.fixture(scope="module")
def draws() -> list[Draw]:
    schedule = Schedule(20_260_101)
    return [schedule.draw("get_order", "O-10233", repeat) for repeat in range(200_000)]


def test_every_fault_is_described() -> None:
    assert set(ABOUT) == set(get_args(Fault))


# Where those can happen that cannot happen to every tool.
ONLY: dict[Fault, set[Kind]] = {
    "stale_read": {"read", "list"},
    "truncation": {"list"},
    "timeout_after_commit": {"write"},
    "field_dropout": {"read", "list"},
}


def test_a_fault_applies_where_it_can_happen() -> None:
    for fault in get_args(Fault):
        assert {kind for kind in APPLIES if fault in APPLIES[kind]} == ONLY.get(fault, set(NOISY))


def test_every_kind_of_tool_is_said_what_applies_to_it() -> None:
    assert set(APPLIES) == set(get_args(Kind)) == {tool.kind for tool in TOOLS.values()}


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
def test_a_control_tool_has_no_share_and_no_type(mixture: Mixture) -> None:
    assert [mixture.share("control", fault) for fault in get_args(Fault)] == [0.0] * len(get_args(Fault))
    assert mixture.pick(APPLIES["control"], LOWEST) is None


USUAL: dict[Fault, int] = {"transient": 45, "rate_limit": 15, "stale_read": 15, "truncation": 15}
WEIGHTS: dict[str, dict[Fault, int]] = {
    "default": {**USUAL, "outage": 10},
    "outage_free": USUAL,
    "outage_heavy": {**USUAL, "outage": 40},
    "held_out": {"timeout_after_commit": 1, "field_dropout": 1},
}


def shares(name: str, kind: Kind) -> dict[Fault, float]:
    """Return the weights of the faults that apply, renormalized."""
    weights = {fault: w for fault, w in WEIGHTS[name].items() if kind in ONLY.get(fault, NOISY)}
    return {fault: weight / sum(weights.values()) for fault, weight in weights.items()}


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("kind", NOISY)
def test_shares_are_the_weights_renormalized(name: str, kind: Kind) -> None:
    stated = {fault: MIXTURES[name].share(kind, fault) for fault in get_args(Fault)}
    assert {fault: share for fault, share in stated.items() if share} == pytest.approx(shares(name, kind))


def fit(mixture: Mixture, kind: Kind, expected: dict[Fault, float], draws: list[Draw]) -> float:
    """Return the chi-square probability of the types that draws name; 0 where one has no share."""
    counts = Counter(mixture.pick(APPLIES[kind], draw) for draw in draws)
    if not counts.keys() <= expected.keys():
        return 0.0
    return float(
        stats.chisquare(
            [counts[fault] for fault in expected], [share * len(draws) for share in expected.values()]
        ).pvalue
    )


@pytest.mark.parametrize("name", ["default", "outage_free", "outage_heavy"])
@pytest.mark.parametrize("kind", NOISY)
def test_types_come_up_in_their_shares(name: str, kind: Kind, draws: list[Draw]) -> None:
    assert fit(MIXTURES[name], kind, shares(name, kind), draws) > 1e-4


def test_types_that_hung_on_the_gate_would_be_rejected(draws: list[Draw]) -> None:
    """Among the draws that fault at p = 0.25 a type taken from the gate is never one of the last."""

    class Gated(Mixture):
        def pick(self, faults: tuple[Fault, ...], draw: Draw) -> Fault | None:
            return super().pick(faults, Draw(draw.digest[:8] * 4))

    faulty = [draw for draw in draws if draw.gate < 0.25]
    assert fit(DEFAULT, "list", shares("default", "list"), faulty) > 1e-4
    assert fit(Gated(DEFAULT.weights), "list", shares("default", "list"), faulty) < 1e-12


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("kind", NOISY)
@pytest.mark.parametrize("draw", [LOWEST, HIGHEST], ids=["lowest", "highest"])
def test_the_extreme_draws_name_a_type_that_applies(mixture: Mixture, kind: Kind, draw: Draw) -> None:
    assert mixture.pick(APPLIES[kind], draw) in APPLIES[kind]


@pytest.mark.parametrize("weights", [{}, {"transient": 0}, {"transient": 1, "outage": -1}])
def test_a_mixture_needs_positive_weights(weights: dict[Fault, int]) -> None:
    with pytest.raises(ValueError, match="needs positive weights"):
        Mixture(weights)


def test_a_mixture_of_nothing_that_applies_names_no_type() -> None:
    assert Mixture({"truncation": 1}).pick(APPLIES["write"], LOWEST) is None


def evenness(length: Callable[[Draw], int], draws: list[Draw]) -> float:
    """Return the chi-square probability of the lengths 1 to 5 under equal chances; 0 where another occurs."""
    counts = Counter(map(length, draws))
    if counts.keys() != {1, 2, 3, 4, 5}:
        return 0.0
    return float(stats.chisquare(list(counts.values())).pvalue)


def test_a_rate_limit_of_one_to_five_seconds_is_equally_likely(draws: list[Draw]) -> None:
    assert evenness(retry_after, draws) > 1e-4


def test_a_rate_limit_is_as_long_among_the_draws_that_name_one(draws: list[Draw]) -> None:
    limited = [
        draw for draw in draws if draw.gate < 0.25 and DEFAULT.pick(APPLIES["list"], draw) == "rate_limit"
    ]
    assert len(limited) > 7000
    assert evenness(retry_after, limited) > 1e-4


BROKEN: dict[str, Callable[[Draw], int]] = {
    "rounded": lambda draw: 1 + round(draw.magnitude * 4),
    "from zero": lambda draw: int(draw.magnitude * 5),
    "to four": lambda draw: 1 + int(draw.magnitude * 4),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_test_of_evenness_rejects_other_lengths(broken: Callable[[Draw], int], draws: list[Draw]) -> None:
    assert evenness(broken, draws) < 1e-12


def extremes() -> Iterator[tuple[int, Draw]]:
    """Yield page sizes with the draws that keep least and most of them."""
    for items in (*range(1, 2000), *(2**power + step for power in range(11, 52) for step in (-1, 0, 1))):
        yield items, LOWEST
        yield items, HIGHEST


def test_a_cut_page_keeps_an_item_and_never_all_of_several() -> None:
    assert [(n, draw) for n, draw in extremes() if not 1 <= kept(draw, n) <= max(1, n - 1)] == []


@pytest.mark.parametrize("items", [2, 5, 20])
def test_every_length_of_a_cut_page_comes_up(items: int, draws: list[Draw]) -> None:
    assert {kept(draw, items) for draw in draws[:2000]} == set(range(1, items))
