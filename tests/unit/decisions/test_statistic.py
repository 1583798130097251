"""Declared numbers: exact where a library rounds, missing where a member is, refused if senseless."""

import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.unit.decisions.study import (
    RULES,
    SmallStudy,
    amendment,
    evaluation_row,
    rule,
    run_row,
    small_study,
)
from toolkit.decisions.decision import Decision
from toolkit.decisions.engine import Engine
from toolkit.decisions.evaluation import outcomes
from toolkit.decisions.intervals import Interval
from toolkit.errors import RuleError
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.rules.values import Missing, rank_correlation, slope, variance
from toolkit.structs import as_builtins

SEEDS = 20
LEVEL = (
    '[endpoints.{name}]\ntitle = "Level"\nregister = "evaluations"\nset = "validation"\n'
    'outcome = {{ count = "successes", of = "episodes" }}\ncondition = "{condition}"\narms = ["{arm}"]\n'
    'seeds = {seeds}\nby = "seed"\nsteps = {steps}\nunit = "fraction"\nrange = ["{low}", "1"]\n{more}\n'
)


def level(name: str, condition: str = "X", arm: str = "paired", steps: str = "[20]", more: str = "") -> str:
    """Return an endpoint of one arm as TOML."""
    low = "-1" if "gain" in more else "0"
    return LEVEL.format(
        name=name, condition=condition, arm=arm, seeds=[*range(SEEDS)], steps=steps, more=more, low=low
    )


def statistic(name: str, formula: str, unit: str = "ratio", ends: str = '["0", "99"]') -> str:
    """Return a statistic as TOML."""
    return (
        f'[statistics.{name}]\ntitle = "A number"\nformula = "{formula}"\nunit = "{unit}"\nrange = {ends}\n'
    )


def interval(name: str, of: str, method: str = "seed bootstrap", more: str = "") -> str:
    """Return an interval by seed as TOML."""
    return f'[intervals.{name}]\nendpoint = "{of}"\nlevel = "0.95"\nmethod = "{method}"\n{more}\n'


MANY = RULES.replace("seeds = [0, 1]", f"seeds = {[*range(SEEDS)]}").replace("tasks = 5", "tasks = 500")
PARTS = level("x") + level("y", arm="independent") + level("u", "Y")
rng = np.random.default_rng(3)
LEVELS = {
    (condition, arm, seed): int(rng.integers(300, 900))
    for condition in "XY"
    for arm in ("paired", "independent")
    for seed in range(SEEDS)
}
X, Y = (np.array([LEVELS["X", arm, s] for s in range(SEEDS)]) / 1000 for arm in ("paired", "independent"))
U = np.array([LEVELS["Y", "paired", s] for s in range(SEEDS)]) / 1000


def study(*left_out: str) -> SmallStudy:
    """Return a study with twenty seeds, without some runs' evaluations."""
    runs = [run_row(*place) for place in LEVELS]
    rows = [
        evaluation_row(f"{c}-{a}-{s}", step, won if step else 200, episodes=1000)
        for (c, a, s), won in LEVELS.items()
        for step in (0, 20)
        if f"{c}-{a}-{s}" not in left_out
    ]
    return SmallStudy({"runs": runs, "evaluations": rows})


def book(*parts: str) -> RuleBook:
    return load_rulebook(MANY + PARTS + "".join(parts))


def decided(*parts: str, of: SmallStudy | None = None) -> Decision:
    return Engine(book(*parts), ("small", "hash"), of or study()).decide("H")


RULE = rule("H", "spread >= 1", "lower(spread_95) >= 0.1", more='estimate = "spread"\ninterval = "spread_95"')
SPREAD = statistic("spread", "variance(x) / variance(y - u)")

fractions = st.fractions(-10, 10, max_denominator=40)
several = st.lists(fractions, min_size=2, max_size=9)
pairs = st.lists(st.tuples(fractions, fractions), min_size=3, max_size=9)


@given(several)
def test_the_variance_is_that_of_the_standard_library(values: list[Fraction]) -> None:
    assert variance(values) == statistics.variance(values)


@given(pairs)
def test_the_slope_is_that_of_scipy(points: list[tuple[Fraction, Fraction]]) -> None:
    x, y = (list(values) for values in zip(*points, strict=True))
    if len(set(x)) == 1:
        assert isinstance(slope(y, x), Missing)
        return
    found = slope(y, x)
    assert isinstance(found, Fraction)
    scale = max(map(abs, y)) / (max(x) - min(x))
    expected = stats.linregress([float(v) for v in x], [float(v) for v in y]).slope
    assert float(found) == pytest.approx(expected, rel=1e-6, abs=1e-6 * float(scale) + 1e-12)


@given(pairs)
def test_the_rank_correlation_is_that_of_scipy_with_its_correction_for_ties_taken_back(points) -> None:
    """tau-b divides by the root of the products of the pairs that neither series ties; tau-a by all pairs."""
    x, y = (list(values) for values in zip(*points, strict=True))
    every = len(points) * (len(points) - 1) // 2
    untied = [every - sum(c * (c - 1) // 2 for c in map(values.count, set(values))) for values in (x, y)]
    found = rank_correlation(x, y)
    if 0 in untied:
        assert found == 0
        return
    by_scipy = stats.kendalltau([float(v) for v in x], [float(v) for v in y]).statistic
    assert float(found) == pytest.approx(by_scipy * (untied[0] * untied[1]) ** 0.5 / every, abs=1e-9)


def test_a_statistic_is_exact_and_the_estimate_of_its_rule() -> None:
    decision = decided(SPREAD, interval("spread_95", "spread"), RULE)
    x, y, u = ([Fraction(round(1000 * v), 1000) for v in values] for values in (X, Y, U))
    expected = statistics.variance(x) / statistics.variance([a - b for a, b in zip(y, u, strict=True)])
    assert decision.estimate is not None
    assert decision.estimate.mean == decision.criteria[0].value == expected
    assert decision.estimate.members is None
    assert "by_seed" not in decision.as_dict()["estimate"]
    assert decision.endpoints_read == ("x", "y", "u")
    assert decision.statistics_read == ("spread",)
    assert {register.config for register in decision.registers} == {"runs", "evaluations"}
    assert decision.criteria[0].basis == ("counts",)


def test_an_interval_of_a_statistic_is_what_loops_over_joint_draws_give() -> None:
    decision = decided(SPREAD, interval("spread_95", "spread"), RULE)
    stream = np.random.SeedSequence(1).spawn(2)[0]
    drawn = np.random.default_rng(stream).integers(0, SEEDS, (SEEDS, 10_000)).T
    values = [X[d].var(ddof=1) / (Y[d] - U[d]).var(ddof=1) for d in drawn]
    made = decision.interval
    assert isinstance(made, Interval)
    assert (float(made.low), float(made.high)) == pytest.approx(tuple(np.quantile(values, (0.025, 0.975))))
    assert made.origin == "computed from seeds, 10,000 resamples"
    assert made.errors is not None
    ordered = np.sort(values)
    for end, error, tail in zip((made.low, made.high), made.errors, (0.025, 0.975), strict=True):
        assert 0 < error < made.high - made.low
        reach = (10_000 * tail * (1 - tail)) ** 0.5 / 10_000
        around = np.quantile(ordered, (tail - 4 * reach, tail + 4 * reach))
        assert float(error) == pytest.approx(float(around[1] - around[0]) / 8, rel=0.05), end


def test_an_interval_takes_every_seed_that_its_formula_reads() -> None:
    """The estimate has its value without the first seed; a draw would miss it."""
    parts = (statistic("later", "mean(rest(x))", "fraction"), interval("later_95", "later"))
    made = Engine(book(*parts), ("small", "hash"), study("X-paired-0")).interval("later_95")
    assert isinstance(made, Missing)
    assert any("X-paired-0" in reason for reason in made.reasons)


def test_an_interval_of_t_over_seeds_is_that_of_scipy() -> None:
    parts = (interval("x_t", "x", "t over seeds"), rule("H", "lower(x_t) > 0.5"))
    decision = Engine(book(*parts), ("small", "hash"), study()).interval("x_t")
    assert isinstance(decision, Interval)
    expected = stats.t.interval(0.95, SEEDS - 1, X.mean(), stats.sem(X))
    assert (float(decision.low), float(decision.high)) == pytest.approx(expected)
    assert (decision.origin, decision.errors) == ("computed from seeds", None)
    assert "resamples" not in as_builtins(decision)


def test_a_seed_bootstrap_of_a_mean_draws_the_seeds_of_the_registered_interval() -> None:
    """Every task alike, so that drawing tasks moves nothing: the two intervals are one."""
    from toolkit.estimators import crossed_bootstrap, draw_weights

    made = Engine(
        book(interval("x_95", "x"), rule("H", "lower(x_95) > 0.5")), ("small", "hash"), study()
    ).interval("x_95")
    assert isinstance(made, Interval)
    other = crossed_bootstrap(np.repeat(X[:, None], 3, axis=1), draw_weights(SEEDS, 3, 10_000, 1), 0.95)
    assert (float(made.low), float(made.high)) == pytest.approx((other.low, other.high), abs=1e-12)
    assert other.low_error is not None
    assert made.errors is not None
    assert float(made.errors[0]) == pytest.approx(other.low_error, abs=1e-12)


def test_a_statistic_is_missing_with_the_reason_of_its_member() -> None:
    decision = decided(SPREAD, interval("spread_95", "spread"), RULE, of=study("X-paired-7"))
    assert decision.verdict == "not_evaluable"
    assert decision.interval is None
    assert any("X-paired-7" in reason for reason in decision.missing)


def test_statistics_are_made_of_statistics_and_of_lists() -> None:
    parts = (
        statistic("gain", "1 + slope(list(mean(x), ratio, 0.3), list(1, 2, 4))", ends='["-9", "9"]'),
        statistic("ratio", "mean(x) / mean(y)"),
        statistic("order", "rank_correlation(x, y)", ends='["-1", "1"]'),
    )
    with pytest.raises(RuleError, match="values of one unit"):
        book(*parts, rule("H", "gain > 0"))
    numbers = parts[0].replace("mean(x),", "mean(x) / mean(u),")
    decision = decided(numbers, *parts[1:], rule("H", "all(gain > 0, order > 0)", more='estimate = "gain"'))
    assert decision.estimate is not None
    assert isinstance(decision.estimate.mean, Fraction)
    points = [X.mean() / U.mean(), X.mean() / Y.mean(), 0.3]
    assert float(decision.estimate.mean) == pytest.approx(1 + np.polyfit([1, 2, 4], points, 1)[0])
    assert set(decision.statistics_read) == {"gain", "ratio", "order"}
    assert set(decision.endpoints_read) == {"x", "y", "u"}


def test_a_gain_in_auc_is_the_area_less_its_first_point() -> None:
    gain = level("gain", steps="[0, 20]", more='over_steps = "auc_gain"')
    both = gain.replace('arms = ["paired"]', 'arms = ["paired", "independent"]').replace(".gain]", ".both]")
    decision = decided(gain, both, rule("H", "mean(gain) > mean(both)", more='estimate = "gain"'))
    assert decision.estimate is not None
    assert decision.estimate.members is not None
    assert [float(v) for v in decision.estimate.members.values] == pytest.approx(list((X + 0.2) / 2 - 0.2))
    assert decision.verdict == "pass"
    assert float(decision.criteria[0].against) == pytest.approx((X - Y).mean() / 2)  # type: ignore[arg-type]


def test_an_amendment_declares_a_statistic() -> None:
    added = amendment(
        "A1", 'adds = ["H"]', SPREAD, interval("spread_95", "spread"), rule("H", "upper(spread_95) > 1")
    )
    changed = load_rulebook(MANY + PARTS + rule("A", "mean(x) > 0.5"), [added])
    assert Engine(changed, ("small", "hash"), study()).decide("H").verdict in ("pass", "miss")
    with pytest.raises(RuleError, match="declared already"):
        load_rulebook(MANY + PARTS + SPREAD + rule("A", "spread > 1"), [added])


def test_a_rule_on_a_statistic_can_pass_and_miss_within_its_range() -> None:
    rules = book(SPREAD, interval("spread_95", "spread"), RULE)
    shown = outcomes(rules, "H")
    assert 1 <= shown.passes.endpoints["spread"] <= 99  # type: ignore[operator]
    with pytest.raises(RuleError, match="can never pass"):
        outcomes(book(SPREAD, rule("H", "spread >= 100")), "H")


def test_two_equal_seeds_have_no_interval_of_a_ratio_of_variances_and_say_why() -> None:
    parts = statistic("s", "variance(gap) / variance(other)") + interval("s_95", "s")
    engine = Engine(load_rulebook(RULES + parts + rule("H", "lower(s_95) > 1")), ("small", "hash"), both())
    made = engine.interval("s_95")
    assert isinstance(made, Missing)
    assert "of 10,000 resamples of seeds" in made.reasons[0]


def both() -> SmallStudy:
    """Return the small study with condition Y as X is."""
    small = small_study()
    for rows in (small.tables["runs"], small.tables["evaluations"]):
        rows += [
            {k: v.replace("X", "Y", 1) if isinstance(v, str) else v for k, v in row.items()} for row in rows
        ]
    return small


def test_a_ratio_whose_denominator_changes_its_sign_says_so() -> None:
    parts = (
        statistic("s", "mean(x) / (mean(y) - 0.600013)"),
        interval("s_95", "s"),
        rule("H", "lower(s_95) > 1"),
    )
    made = Engine(book(*parts), ("small", "hash"), study()).interval("s_95")
    assert isinstance(made, Interval)
    stream = np.random.SeedSequence(1).spawn(2)[0]
    drawn = np.random.default_rng(stream).integers(0, SEEDS, (SEEDS, 10_000)).T
    share = (np.sign(Y[drawn].mean(axis=1) - 0.600013) != np.sign(Y.mean() - 0.600013)).mean()
    assert 0 < share < 1
    assert made.method.endswith(f"a denominator changes its sign in {share:.1%} of them")


PICTURE = """
[pictures.P]
title = "Both"
up = "seen"
across = [{ name = "one", statistic = "how_well" }, { name = "other" }]
[[pictures.P.points]]
name = "here"
kind = "some"
predicted = ["0.5", "0.25"]
statistic = "spread"
interval = "spread_95"
"""


def test_a_picture_holds_what_was_predicted_of_each_statistic_exactly() -> None:
    declared = SPREAD + statistic("how_well", "variance(x)", "fraction²") + interval("spread_95", "spread")
    picture = book(declared, PICTURE).pictures["P"]
    (point,) = picture.points
    assert point.predicted == (Fraction(1, 2), Fraction(1, 4))
    assert [(p.name, p.statistic) for p in picture.across] == [("one", "how_well"), ("other", "")]
