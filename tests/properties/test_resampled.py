"""A formula on draws of seeds is the formula on series that hold what was drawn: `evaluate` is the oracle."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.decisions.evaluation import evaluate
from toolkit.estimators.resampled import Resampled
from toolkit.rules.expressions import Binary, Call, Expression, Name, Number, parse
from toolkit.rules.values import Missing, Series, Value

SEEDS, RESAMPLES = 4, 6
names = st.sampled_from(("s", "t"))
constants = st.sampled_from(("0", "0.5", "1", "2", "(-1)"))
# Halves, sums and products of them, and means of four are doubles: where two are equal, or one is zero,
# floats say so, too. Only such are compared, divided by or ranked.
exact = st.one_of(
    names,
    st.builds("({} {} {})".format, names, st.sampled_from("+-*"), names | constants),
    st.builds("abs({} - {})".format, names, constants),
)
even = st.builds("{}({})".format, st.sampled_from(("mean", "min", "max", "first", "last")), exact) | constants
series = exact | st.builds("({} / {})".format, names, names | even)
summaries = st.sampled_from(("mean", "min", "max", "first", "last", "variance"))
summed = st.builds("{}({})".format, summaries, series)
pairs = st.one_of(
    st.builds("slope({}, {})".format, series, exact),
    st.builds("rank_correlation({}, {})".format, exact, exact),
)
counts = st.one_of(
    st.builds("count({} {} {})".format, exact, st.sampled_from((">=", "<=", ">", "<", "=")), even),
    st.builds("count(within({}, {}, {}))".format, exact, constants, even),
    st.builds("count(between({}, {}, {}))".format, exact, constants, even),
)
numbers = summed | pairs | counts | constants
lists = st.builds("list({}, {}, {})".format, numbers, numbers, numbers)
of_lists = st.one_of(
    st.builds("{}({})".format, summaries, lists),
    st.builds("slope({}, list({}, 1, {}))".format, lists, even, even),
    st.builds("mean(rest({}))".format, lists),
    st.builds("rank_correlation(list({}, {}, {}), list(1, 3, 2))".format, even, even, even),
)
formulas = st.one_of(
    numbers,
    of_lists,
    st.builds("({} {} {})".format, numbers, st.sampled_from("+-*"), numbers | of_lists),
    st.builds("({} / {})".format, numbers | of_lists, even),
)
values = st.lists(st.integers(-3, 3).map(lambda n: Fraction(n, 2)), min_size=SEEDS, max_size=SEEDS)


def on_draws(sample: Resampled, expression: Expression, given_: dict[str, list[Fraction]]) -> np.ndarray:
    match expression:
        case Number(_, value):
            return sample.number(float(value))
        case Name(name):
            return sample.of_seeds([float(value) for value in given_[name]])
        case Binary(operator, left, right):
            return sample.combine(operator, on_draws(sample, left, given_), on_draws(sample, right, given_))
        case Call(operator, arguments):
            return sample.apply(operator, *(on_draws(sample, argument, given_) for argument in arguments))


@settings(max_examples=max(100, settings.default.max_examples))  # a quotient over zero is rare
@given(formulas, values, values, st.integers(0, 99))
def test_a_formula_on_draws_is_the_formula_on_what_was_drawn(text, s, t, rng_seed) -> None:
    expression = parse(text, "here")
    sample = Resampled.draws(SEEDS, RESAMPLES, rng_seed)
    found = sample.in_full(on_draws(sample, expression, {"s": s, "t": t}))
    stream = np.random.SeedSequence(rng_seed).spawn(2)[0]
    drawn = np.random.default_rng(stream).integers(0, SEEDS, (SEEDS, RESAMPLES)).T
    for value, rows in zip(found, drawn.tolist(), strict=True):
        series = {
            name: Series("seed", tuple((str(place), of[row]) for place, row in enumerate(rows)))
            for name, of in (("s", s), ("t", t))
        }

        def resolve(_: str, name: str, series: dict[str, Series[Fraction]] = series) -> Value:
            return series[name]

        answer = evaluate(expression, resolve)
        if isinstance(answer, Missing):
            assert np.isnan(value)
        else:
            assert isinstance(answer, Fraction)
            assert value == pytest.approx(float(answer), rel=1e-9, abs=1e-9)


def test_a_variance_on_draws_is_the_sample_variance_of_numpy() -> None:
    sample, values = Resampled.draws(7, 50, 3), [0.3, 0.1, 0.7, 0.2, 0.9, 0.4, 0.6]
    drawn = sample.of_seeds(values)
    np.testing.assert_allclose(sample.apply("variance", drawn), drawn.var(axis=-1, ddof=1))


def test_members_that_are_equal_have_no_variance_however_their_mean_rounds() -> None:
    sample = Resampled.draws(7, 50, 3)
    assert not sample.apply("variance", sample.of_seeds([0.1] * 7)).any()
