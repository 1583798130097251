"""Intervals made of the values of seeds: of a formula on seeds drawn together, and Student's of a mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

from toolkit.decisions.endpoints import IntervalSpec
from toolkit.decisions.expressions import Binary, Call, Expression, Name, Number
from toolkit.decisions.interval import Interval, unavailable
from toolkit.decisions.methods import T_OVER_SEEDS
from toolkit.decisions.rulebook import RuleBook
from toolkit.decisions.values import Missing, Scalar, Series, mean_of, together, whole

if TYPE_CHECKING:
    from toolkit.estimators.resampled import Resampled

Value = Callable[[str], Scalar | Series[Fraction]]
SOURCE: Final = "computed from seeds"
FEWEST = 2  # a spread takes two seeds, and one can only be drawn again


def interval_by_seed(spec: IntervalSpec, book: RuleBook, value: Value) -> Interval | Missing:
    """Compute an interval from the values of seeds.

    1. Every seed has its value, and what is made of them has one.
    2. Draw seeds, the same for every endpoint that the formula reads.
    3. Evaluate the formula on every draw. Where one has no value, the interval has none.
    4. Take the percentiles; of a mean alone, Student's interval instead of all this.
    """
    from toolkit.estimators import percentile_interval
    from toolkit.estimators.resampled import without_value

    estimate = mean_of(value(spec.endpoint))  # 1
    read = {e.id: value(e.id) for e in book.endpoints.values() if e.id in book.read_by([spec.endpoint])}
    numbers = whole(number for given in read.values() for number in _numbers(given))
    if isinstance(numbers, Missing) or isinstance(estimate, Missing):
        return together(gap for gap in (numbers, estimate) if isinstance(gap, Missing))
    if spec.method == T_OVER_SEEDS:
        return _students(spec, [float(number) for number in numbers])
    if _seeds(read) < FEWEST:
        return unavailable(f"{spec.endpoint} has a single seed, and nothing to draw from")
    drawn, turned = _drawn(spec, book, read)  # 2, 3
    lacking = without_value(drawn)
    if lacking:
        return unavailable(
            f"{spec.endpoint} has no value on {lacking:,} of {spec.resamples:,} resamples of seeds, where it "
            "is a quotient over zero or has too few different seeds"
        )
    made = percentile_interval(float(estimate), drawn, float(spec.level))  # 4
    errors = (Fraction(made.low_error or 0), Fraction(made.high_error or 0))
    words = spec.made + (f"; a denominator changes its sign in {turned:.1%} of them" if turned else "")
    ends = (Fraction(made.low), Fraction(made.high))
    return Interval(spec.id, spec.endpoint, spec.level, *ends, SOURCE, words, errors, spec.resamples)


def _students(spec: IntervalSpec, differences: Sequence[float]) -> Interval | Missing:
    from toolkit.estimators import t_interval

    if len(differences) < FEWEST:
        return unavailable(f"{spec.endpoint} has a single seed, and no spread between seeds")
    low, high = t_interval(differences, float(spec.level))
    return Interval(spec.id, spec.endpoint, spec.level, Fraction(low), Fraction(high), SOURCE, spec.made)


def _drawn(
    spec: IntervalSpec, book: RuleBook, read: Mapping[str, Scalar | Series[Fraction]]
) -> tuple[Any, float]:
    """Return a mean or a statistic on every resample, and how often a denominator's sign turned."""
    from toolkit.estimators.resampled import Resampled, turned

    formula = book.statistics[spec.endpoint].expression if spec.endpoint in book.statistics else None
    expression = formula or Call("mean", (Name(spec.endpoint),))
    observed = Resampled.whole_sample(_seeds(read))
    resampled = Resampled.draws(_seeds(read), spec.resamples, spec.rng_seed)
    _, values = (_Evaluation(book, read, sample).of(expression) for sample in (observed, resampled))
    return resampled.in_full(values), turned(resampled, observed)


class _Evaluation:
    """A formula on what was drawn; every name is found once."""

    def __init__(
        self, book: RuleBook, read: Mapping[str, Scalar | Series[Fraction]], sample: Resampled
    ) -> None:
        self._book = book
        self._read = read
        self._sample = sample
        self._found: dict[str, Any] = {}

    def of(self, expression: Expression) -> Any:
        match expression:
            case Number(_, value):
                return self._sample.number(float(value))
            case Name(name):
                if name not in self._found:
                    self._found[name] = self._named(name)
                return self._found[name]
            case Binary(operator, left, right):
                return self._sample.combine(operator, self.of(left), self.of(right))
            case Call(operator, arguments):
                return self._sample.apply(operator, *(self.of(argument) for argument in arguments))

    def _named(self, name: str) -> Any:
        if name in self._book.statistics:
            return self.of(self._book.statistics[name].expression)
        value = self._read[name]
        numbers = [float(cast("Fraction", number)) for number in _numbers(value)]
        if not isinstance(value, Series):
            return self._sample.number(numbers[0])
        return self._sample.of_seeds(numbers) if value.unit == "seed" else self._sample.fixed(numbers)


def _seeds(read: Mapping[str, Scalar | Series[Fraction]]) -> int:
    """Return how many seeds there are: as many for every endpoint, as the rule book checked."""
    return next(len(v.items) for v in read.values() if isinstance(v, Series) and v.unit == "seed")


def _numbers(value: Scalar | Series[Fraction]) -> tuple[Scalar, ...]:
    return value.values if isinstance(value, Series) else (value,)
