"""What each regime does to calls and to grades."""

from collections import Counter

import pytest
from scipy import stats

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.noise.draws import Draw, Schedule
from toolkit.noise.regimes import DEFAULT, HELD_OUT, OUTAGE_FREE, OUTAGE_HEAVY, REGIMES, Regime
from toolkit.noise.tools import APPLIES, Kind, Tool
from toolkit.registers import columns

KINDS: tuple[Kind, ...] = ("read", "list", "write", "control")
FAULTY = {
    "faults_p010": (0.10, DEFAULT),
    "faults_p025": (0.25, DEFAULT),
    "faults_p025_outage_free": (0.25, OUTAGE_FREE),
    "faults_p025_outage_heavy": (0.25, OUTAGE_HEAVY),
    "held_out_types": (0.25, HELD_OUT),
}
FLIPPING = {"flips_q005": 0.05, "flips_q010": 0.10}
# A draw that falls below every rate.
LOWEST = Draw(bytes(32))


@pytest.fixture(scope="module")
def draws() -> list[Draw]:
    schedule = Schedule(7)
    return [schedule.draw("list_orders", "C-200013", repeat) for repeat in range(100_000)]


@pytest.fixture(scope="module")
def schedules() -> list[Schedule]:
    return [Schedule(seed) for seed in range(100_000)]


def test_the_regimes_are_those_of_the_registers() -> None:
    assert tuple(REGIMES) == columns.REGIMES


def test_every_regime_is_quiet_or_faulty_or_the_challenge() -> None:
    quiet = {name for name, regime in REGIMES.items() if not regime.ceiling}
    assert quiet == REGIMES.keys() - FAULTY.keys() - {"challenge"}


@pytest.mark.parametrize("name", ["clean", *FLIPPING])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("repeat", [0, 1])
def test_clean_and_flip_regimes_never_fault(name: str, kind: Kind, repeat: int) -> None:
    assert REGIMES[name].fault(Tool("any", kind), repeat, LOWEST) is None


@pytest.mark.parametrize("regime", REGIMES.values(), ids=REGIMES)
@pytest.mark.parametrize("repeat", [0, 1])
def test_a_control_tool_never_faults(regime: Regime, repeat: int) -> None:
    controls = [tool for tool in TOOLS.values() if tool.kind == "control"]
    assert [tool.name for tool in controls if regime.fault(tool, repeat, LOWEST) is not None] == []


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("kind", ["read", "list", "write"])
def test_only_types_that_apply_and_have_a_weight_come_up(name: str, kind: Kind, draws: list[Draw]) -> None:
    """Each of them does, too: 20,000 draws leave none out."""
    faults = {REGIMES[name].fault(Tool("any", kind), 0, draw) for draw in draws[:20_000]}
    assert faults - {None} == set(APPLIES[kind]) & set(FAULTY[name][1].weights)


def rate(regime: Regime, kind: Kind, expected: float, draws: list[Draw]) -> float:
    """Return the exact binomial probability of a regime's number of faults, were the rate as expected."""
    faults = sum(regime.fault(Tool("any", kind), 0, draw) is not None for draw in draws)
    return float(stats.binomtest(faults, len(draws), expected).pvalue)


@pytest.mark.parametrize(("name", "expected"), [(name, p) for name, (p, _) in FAULTY.items()])
def test_calls_fault_at_the_regime_s_rate(name: str, expected: float, draws: list[Draw]) -> None:
    assert rate(REGIMES[name], "list", expected, draws) > 1e-4


def test_faults_are_as_frequent_for_every_kind_of_tool(draws: list[Draw]) -> None:
    counts = Counter(
        kind
        for draw in draws[:20_000]
        for kind in ("read", "list", "write")
        if REGIMES["faults_p025"].fault(Tool("any", kind), 0, draw) is not None
    )
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("repeat", [0, 1, 2, 50])
@pytest.mark.parametrize("draw", [LOWEST, Draw(b"\xff" * 32)], ids=["lowest", "highest"])
def test_the_challenge_faults_exactly_the_first_attempt_of_writes(kind, repeat, draw) -> None:
    expected = "transient" if (kind, repeat) == ("write", 0) else None
    assert REGIMES["challenge"].fault(Tool("any", kind), repeat, draw) == expected


def flips(regime: Regime, schedules: list[Schedule]) -> set[int]:
    """Return the seeds of the schedules whose successes are graded failures."""
    return {schedule.seed for schedule in schedules if regime.flips(schedule)}


def test_only_flip_regimes_flip(schedules: list[Schedule]) -> None:
    assert {name for name, regime in REGIMES.items() if flips(regime, schedules[:500])} == set(FLIPPING)


@pytest.mark.parametrize(("name", "expected"), FLIPPING.items())
def test_successes_flip_at_the_regime_s_rate(name: str, expected: float, schedules: list[Schedule]) -> None:
    flipped = len(flips(REGIMES[name], schedules))
    assert stats.binomtest(flipped, len(schedules), expected).pvalue > 1e-4


def test_what_flips_at_the_lower_rate_flips_at_the_higher(schedules: list[Schedule]) -> None:
    assert flips(REGIMES["flips_q005"], schedules[:20_000]) < flips(REGIMES["flips_q010"], schedules[:20_000])


def test_a_flip_says_nothing_about_the_faults_of_the_episode(schedules: list[Schedule]) -> None:
    flip, fault = REGIMES["flips_q010"], REGIMES["faults_p025"]
    drawn = ((schedule, schedule.draw("get_order", "O-10233", 0)) for schedule in schedules[:50_000])
    counts = Counter(
        (flip.flips(s), fault.fault(Tool("any", "read"), 0, draw) is not None) for s, draw in drawn
    )
    table = [[counts[flipped, faulty] for faulty in (False, True)] for flipped in (False, True)]
    assert stats.chi2_contingency(table).pvalue > 1e-4
