"""Units that do not fit what is measured, each as one defect of a good registration."""

import pytest

from tests.unit.decisions.study import RULES, rule
from toolkit.decisions.case import Case
from toolkit.errors import RuleError
from toolkit.rules.rulebook import RuleBook, Unit, load_rulebook, unit_of

RUNS = 'register = "{}"\nby = "{}"\ncondition = "X"\narms = ["paired", "independent"]\nseeds = [0, 1]\n'
WAITING = 'steps = [0, 20]\nover_steps = "steps_to_threshold"\nthreshold = "0.5"\n'
# Where an endpoint is measured.
PROBE = 'register = "probe"\nby = "checkpoint"\ncheckpoints = ["base@0", "A@20"]\n'
GROUPS, CONTRAST = RUNS.format("groups_summary", "run"), RUNS.format("groups_summary", "seed")
LUCK = RUNS.format("luck_share_summary", "run") + "steps = [0]"
WAIT = RUNS.format("evaluations", "seed") + WAITING
# What is measured.
TRACE = 'figure = "trace_paired"'
TRACES, NORMS = f'{TRACE}, over = "trace_independent"', f'{TRACE}, over = "mean_norm_paired"'
SHARE = 'figure = "luck_share"'
RATE = 'count = "successes", of = "episodes"'
SPURIOUS = 'count = "spurious", of = "groups"'


def figure(unit: str, low: object, high: object, outcome: str, measured: str = PROBE, name: str = "x") -> str:
    """Return an endpoint as TOML."""
    head = f'[endpoints.{name}]\ntitle = "A figure"\noutcome = {{ {outcome} }}\n'
    return f'{head}{measured}\nunit = "{unit}"\nrange = ["{low}", "{high}"]\n'


GOOD = {
    "a figure over another": figure("ratio", 0, 9, TRACES),
    "a figure over one of another unit": figure("score", 0, 9, NORMS),
    "a figure over one of no common unit": figure(
        "score²/reward²", 0, 9, f'{TRACE}, over = "reward_contrast_paired"'
    ),
    "a figure": figure("score²", 0, 9, TRACE),
    "a figure without unit from 0 to 1": figure("fraction", 0, 1, SHARE, LUCK),
    "a figure without unit": figure("number", -1, 1, 'figure = "cosine"'),
    "a contrast of figures": figure("fraction", -1, 1, SHARE, LUCK.replace('"run"', '"seed"')),
    "steps waited for": figure("steps", -20, 20, RATE, WAIT),
    "a rate bounded through another count": figure("fraction", 0, 1, SPURIOUS, GROUPS),
    "a rate of counts that do not bound each other": figure(
        "ratio", 0, 99, 'count = "groups", of = "spurious"', GROUPS
    ),
    "a rate of counts of different things": figure(
        "calls/episodes",
        0,
        99,
        'count = "calls", of = "episodes"',
        LUCK.replace("luck_share_summary", "evaluations"),
    ),
}
PERCENT, POINTS = WAIT.replace("0.5", "50"), "percentage points"
# Name → an endpoint, what is expected, what is found.
BAD = {
    "a rate in percent": (figure("percent", 0, 1, RATE, WAIT), "steps", "percent"),
    "a waiting called a fraction": (figure("fraction", 0, 1, RATE, WAIT), "steps", "fraction"),
    "a ratio called a fraction": (figure("fraction", 0, 1, TRACES), "ratio", "fraction"),
    "a figure called a ratio": (figure("ratio", 0, 9, TRACE), "score²", "ratio"),
    "a count of one thing over another called a ratio": (figure("ratio", 0, 9, NORMS), "score", "ratio"),
    "a count called a fraction": (
        figure("fraction", 0, 1, 'figure = "groups"', GROUPS),
        "groups",
        "fraction",
    ),
    "a fraction named for percentage points": (
        figure("fraction", 0, 1, SPURIOUS, GROUPS, "x_pp"),
        POINTS,
        "x_pp in fraction",
    ),
    "a fraction declared in percentage points": (
        figure(POINTS, 0, 1, SPURIOUS, GROUPS, "x_pp"),
        "fraction",
        POINTS,
    ),
    "a fraction up to a hundred": (figure("fraction", 0, 100, SPURIOUS, GROUPS), "within 0 to 1", "0 to 100"),
    "a level below zero": (figure("fraction", -1, 1, SPURIOUS, GROUPS), "within 0 to 1", "-1 to 1"),
    "a contrast of fractions beyond one": (
        figure("fraction", -1, 1.5, SPURIOUS, CONTRAST),
        "within -1 to 1",
        "-1 to 1.5",
    ),
    "steps beyond the last": (figure("steps", -20, 40, RATE, WAIT), "within -20 to 20", "-20 to 40"),
    "a wait for a percentage": (figure("steps", 0, 20, RATE, PERCENT), "within 0 to 1", "50"),
    "a trace below zero": (figure("score²", -1, 9, TRACE), "within 0 to any", "-1 to 9"),
    "a ratio of traces below zero": (figure("ratio", -1, 9, TRACES), "within 0 to any", "-1 to 9"),
}
MIXED = {
    "a comparison": "mean(x) > pooled",
    "a difference": "mean(x) - pooled > 0",
    "a sum within": "within(mean(x) + pooled, 0, 1)",
    "a series": "each(x > pooled)",
    "a margin": "within(mean(x), 1, pooled)",
    "an end": "between(mean(x), 0, pooled)",
    "a product with a fraction": "mean(x) * pooled > mean(x)",
    "a quotient and a fraction": "mean(x) / mean(x) > pooled",
    "an interval": "lower(gap_95) > mean(x)",
    "a count of members": "count(x > 0) > pooled",
    "deep inside": "not(any(all(mean(x) > 0, mean(x) = pooled), passes(A)))",
}
LIKE = [
    "all(mean(x) > 1, pooled < 0.5, count(x > 0) = 1, decreasing(x))",
    "mean(x) / last(x) > 0.5",
    "mean(x) * pooled / mean(x) > mean(gap)",
    "abs(2 * max(x) - min(x)) <= first(x)",
    "within(mean(gap), pooled, 0.1)",
    "lower(gap_95) > mean(gap) - 0.1",
    "count(x > 0) >= count(gap > 0)",
    "passes(A)",
    "any(within(pooled, 0, 1), majority(between(x, 1, 2)))",
]


def book_of(endpoint: str, test: str = "pooled > 0.5") -> RuleBook:
    return load_rulebook(RULES + endpoint + rule("A", "mean(gap) > 0") + rule("H", test))


@pytest.mark.parametrize("endpoint", GOOD.values(), ids=GOOD)
def test_an_endpoint_with_the_unit_of_what_it_measures_is_taken(endpoint: str) -> None:
    assert "x" in book_of(endpoint).endpoints


@pytest.mark.parametrize(("endpoint", "expected", "found"), BAD.values(), ids=BAD)
def test_an_endpoint_with_another_unit_or_range_is_refused(endpoint: str, expected: str, found: str) -> None:
    with pytest.raises(RuleError) as caught:
        book_of(endpoint)
    assert (caught.value.expected, caught.value.found) == (expected, found)
    assert str(caught.value.where).startswith("endpoints.x")


@pytest.mark.parametrize("test", MIXED.values(), ids=MIXED)
def test_a_test_that_mixes_units_is_refused(test: str) -> None:
    with pytest.raises(RuleError, match="takes values of one unit") as caught:
        book_of(GOOD["a figure"], test)
    assert caught.value.where == "H.c0"
    assert caught.value.expected != caught.value.found


@pytest.mark.parametrize("test", LIKE)
def test_a_test_of_like_with_like_is_taken(test: str) -> None:
    assert book_of(GOOD["a figure"], test).rules["H"].criteria[0].test == test


def test_units_multiply_and_cancel() -> None:
    steps, calls = Unit((("steps", 1),)), Unit((("calls", 1),))
    assert str(steps.times(steps)) == "steps²"
    assert str(steps.times(steps).times(steps)) == "steps^3"
    assert str(steps.times(steps, -1)) == "ratio"
    assert str(calls.times(steps, -1)) == "calls/steps"
    assert str(Unit().times(steps, -1)) == "1/steps"
    assert str(calls.times(steps)) == "calls·steps"


def test_the_shipped_registration_measures_in_its_declared_units(case: Case) -> None:
    units = {endpoint.unit for endpoint in case.book.endpoints.values()}
    assert units == {"fraction", "ratio", "steps"}
    assert all(str(unit_of(endpoint)) == endpoint.unit for endpoint in case.book.endpoints.values())
