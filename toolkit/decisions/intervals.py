"""Intervals and p-values beside an estimate: published, over seeds, over tasks, of quotients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import fsum, lcm, ulp
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from toolkit.decisions.measure import (
    EPISODES,
    Row,
    Tables,
    counted_at,
    episode_counts,
    excludes,
    in_words,
    rows_of,
)
from toolkit.errors import DamagedError
from toolkit.estimators import bootstrap
from toolkit.estimators.curves import auc_weights
from toolkit.registers.columns import EXCLUDED
from toolkit.rules.endpoints import (
    COUNTED_BY_TASK,
    OVER_TASKS,
    T_OVER_SEEDS,
    T_OVER_TASKS,
    Endpoint,
    IntervalSpec,
)
from toolkit.rules.expressions import Binary, Call, Expression, Name, Number
from toolkit.rules.plan import Plan
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.rules import HOLM, MCNEMAR, SEEDS, SIGN_FLIP, Family, Significance
from toolkit.rules.values import Missing, Scalar, Series, exact, exact_text, fixed, mean_of, together, whole
from toolkit.structs import HIDDEN, UNSET, Document, Shown, UnsetType, about

if TYPE_CHECKING:
    from toolkit.estimators.exact_tests import ExactTest
    from toolkit.estimators.resampled import Resampled
    from toolkit.registers.episode_counts import Counts


# An interval printed more coarsely than this cannot be told to belong to an estimate.
COARSEST = Fraction(1, 2000)


Evidence = Literal["excludes_zero", "includes_zero", "includes_threshold", "not_estimated"]
IntervalSource = Literal["computed", "computed from tasks", "computed from seeds", "published"]


class Interval(Document, frozen=True, omit_defaults=True):
    """A registered interval, in the estimate's unit; its ends exactly as printed where it was published."""

    id: Annotated[str, HIDDEN]
    endpoint: Annotated[str, HIDDEN]  # or a statistic
    level: Annotated[Fraction, about("Confidence level, as 0.95.")]
    low: Annotated[Fraction, about("Lower end of the interval.")]
    high: Annotated[Fraction, about("Upper end of the interval.")]
    source: Annotated[
        IntervalSource, about("`computed` from episode rows; `published` where these never were.")
    ]
    method: Annotated[str, about("How it was made, and from what.")]
    errors: Annotated[
        tuple[Fraction, Fraction] | None,
        Shown("low_error", float, "Monte Carlo standard error of the lower end.", itemgetter(0)),
        Shown("high_error", float, "Monte Carlo standard error of the upper end.", itemgetter(1)),
    ] = None
    resamples: Annotated[int, about("How many it was computed from.")] = 0

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        if self.source == "computed":
            return f"computed from episode rows, {self.resamples:,} resamples"
        return f"{self.source}, {self.resamples:,} resamples" if self.resamples else self.source

    @property
    def text(self) -> str:
        """Its level and its ends, as `95% [-0.0039, +0.0779]`."""
        return f"{float(100 * self.level):g}% [{self.ends_text}]"

    @property
    def ends_text(self) -> str:
        """Its ends, as `-0.0039, +0.0779`."""
        return f"{fixed(self.low, signed=True)}, {fixed(self.high, signed=True)}"

    def end_text(self, end: str) -> str:
        """Return the `lower` or `upper` end with its Monte Carlo error, in words."""
        low_error, high_error = self.errors or (0, 0)
        value, error = (self.low, low_error) if end == "lower" else (self.high, high_error)
        numbers = f"{fixed(value, 5, signed=True)} with a Monte Carlo error of {fixed(error, 5)}"
        return f"the {end} end of {self.id}, {numbers}"


def computed_interval(
    spec: IntervalSpec, low: float, high: float, low_error: float, high_error: float
) -> Interval:
    """Return a registered interval by its ends and their Monte Carlo errors."""
    ends, errors = (Fraction(low), Fraction(high)), (Fraction(low_error), Fraction(high_error))
    names = (spec.id, spec.endpoint, spec.level)
    return Interval(*names, *ends, "computed", spec.made, errors, spec.resamples)


def registered_interval(spec: IntervalSpec, mean: Scalar, registers: Tables) -> Interval | Missing:
    """Return a registered interval of a study, or what is missing for it.

    An interval as published has to be the registered one: same method, resamples and units. And it has to
    belong to the study's own figures: its printed estimate is the mean that the registers give, at the
    printed digits.
    """
    rows = registers.rows("intervals") if registers.has("intervals") else []
    matching = [r for r in rows if r["endpoint"] == spec.endpoint and exact(r["level"]) == spec.level]
    if isinstance(mean, Missing):
        return mean
    if not matching:
        return unavailable(
            f"no {float(spec.level):.0%} interval of {spec.endpoint} was published, and no episode rows"
        )
    row = matching[0]
    made = (row["method"], row["resamples"], row["resampled"])
    registered = (spec.method, spec.resamples, "; ".join(spec.resampled))
    if made != registered:
        return unavailable(
            f"the published interval of {spec.endpoint} was made by {' / '.join(map(str, made))}, "
            f"and {' / '.join(map(str, registered))} is registered"
        )
    printed, half = exact(row["estimate"]), Fraction(1, 2 * 10 ** int(row["decimals"]))
    if abs(printed - mean) > min(half, COARSEST):
        return unavailable(
            f"the published interval of {spec.endpoint} belongs to an estimate of {float(printed)}, "
            f"and the registers give {float(mean):.5f}"
        )
    method = f"{row['method']}, {row['resamples']} resamples of {row['resampled']}"
    return Interval(
        spec.id, spec.endpoint, spec.level, exact(row["low"]), exact(row["high"]), "published", method
    )


def evidence_of(interval: Interval | Missing | None, threshold: Fraction | None) -> Evidence:
    """Say what an interval shows: whether zero, or else the threshold, lies in it."""
    if interval is None or isinstance(interval, Missing):
        return "not_estimated"
    if interval.low <= 0 <= interval.high:
        return "includes_zero"
    if threshold is not None and interval.low <= threshold <= interval.high:
        return "includes_threshold"
    return "excludes_zero"


def unavailable(reason: str) -> Missing:
    """Return why there is no interval."""
    return Missing(not_run=False, reasons=(reason,))


_MEMBERS = 2


def means_divided_by(expression: Expression) -> Iterator[str]:
    """Yield the endpoints whose mean a test divides by."""
    match expression:
        case Binary(operator, left, right):
            yield from means_divided_by(left)
            yield from means_divided_by(right)
            if operator == "/":
                yield from _means(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from means_divided_by(argument)


def _means(divisor: Expression) -> Iterator[str]:
    """Yield the endpoint that a divisor is the mean of; of another expression no interval is known."""
    match divisor:
        case Call("mean" | "abs", (Name(name),)) | Name(name):
            yield name
        case Call("abs", (inside,)):
            yield from _means(inside)


def caution(name: str, value: Scalar | Series[Fraction], interval: Interval | Missing | None) -> str:
    """Say that a mean that is divided by is not told from zero; nothing where it is, or is not known.

    Near zero means: zero lies in the interval of the mean. That is the registered interval, where the mean
    has one; else Student's over its members, at the level of those that are registered.
    """
    mean = mean_of(value)
    if isinstance(mean, Missing):
        return ""
    if isinstance(interval, Interval):
        low, high, level = float(interval.low), float(interval.high), float(interval.level)
        origin = "its registered interval"
    else:
        members = value.present() if isinstance(value, Series) else ()
        if isinstance(members, Missing) or len(members) < _MEMBERS:
            return ""
        from toolkit.estimators.secondary import USUAL_LEVEL, t_interval

        level = USUAL_LEVEL
        low, high = t_interval([float(member) for member in members], level)
        origin = f"Student's interval over {len(members)} members"
    if not low <= 0 <= high:
        return ""
    return (
        f"the quotient's denominator, the mean of {name}, is not told from zero: {float(mean):+.4f}, "
        f"{level:.0%} [{low:+.4f}, {high:+.4f}] ({origin}); the size and the sign of the quotient say little"
    )


FROM_TASKS: Final = "computed from tasks"
Differences = list[list[int | float | None]]
"""Of each seed a row: what its arms differ by in each task; None where it goes without the task."""
Draws = dict[tuple[int, int, int], Any]
"""(tasks, resamples, seed) → the tasks drawn, as `draw_tasks` returns them."""


def interval_over_tasks(
    spec: IntervalSpec, differences: Sequence[Sequence[float]], denominator: int, drawn: Draws
) -> Interval | Missing:
    """Compute an interval from the differences of tasks."""
    from toolkit.estimators.clustered import clustered_bca_interval, clustered_t_interval

    totals = [sum(of_task) for of_task in zip(*differences, strict=True)]
    whole, level = denominator * len(differences), float(spec.level)
    named = (spec.id, spec.endpoint, spec.level)
    if spec.method == T_OVER_TASKS:
        low, high = clustered_t_interval(totals, whole, level)
        return Interval(*named, Fraction(low), Fraction(high), FROM_TASKS, spec.made)
    key = (len(totals), spec.resamples, spec.rng_seed)
    if key not in drawn:
        drawn[key] = bootstrap.draw_tasks(*key)
    made = clustered_bca_interval(totals, whole, drawn[key], level)
    if made is None:
        return unavailable(
            f"the tasks' differences in {spec.endpoint} are all alike, or too skewed for {spec.id}"
        )
    errors = (Fraction(made.low_error or 0), Fraction(made.high_error or 0))
    ends = (Fraction(made.low), Fraction(made.high))
    return Interval(*named, *ends, FROM_TASKS, spec.made, errors, spec.resamples)


Value = Callable[[str], Scalar | Series[Fraction]]
FROM_SEEDS: Final = "computed from seeds"
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
    return Interval(spec.id, spec.endpoint, spec.level, *ends, FROM_SEEDS, words, errors, spec.resamples)


def _students(spec: IntervalSpec, differences: Sequence[float]) -> Interval | Missing:
    from toolkit.estimators import t_interval

    if len(differences) < FEWEST:
        return unavailable(f"{spec.endpoint} has a single seed, and no spread between seeds")
    low, high = t_interval(differences, float(spec.level))
    return Interval(spec.id, spec.endpoint, spec.level, Fraction(low), Fraction(high), FROM_SEEDS, spec.made)


def _drawn(
    spec: IntervalSpec, book: RuleBook, read: Mapping[str, Scalar | Series[Fraction]]
) -> tuple[Any, float]:
    """Return a mean or a statistic on every resample, and how often a denominator's sign turned."""
    from toolkit.estimators.resampled import Resampled, turned

    formula = book.statistics[spec.endpoint].expression if spec.endpoint in book.statistics else None
    expression = formula or Call("mean", (Name(spec.endpoint),))
    observed = Resampled.original_sample(_seeds(read))
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


ValueOf = Callable[[str], Scalar | Series[Fraction]]
Table = Sequence[Sequence[int | float | None]]
TableOf = Callable[[Endpoint], Table | Missing]
"""An endpoint's differences by seed and task, over a common denominator; whole where episodes are counted."""
# What is added up, as scores, is rounded to this, so that equal differences are equal.
GRID = 10**9


def _exactly(value: Scalar) -> str | None:
    return None if isinstance(value, Missing) else exact_text(value)


def _roughly(value: Scalar) -> float | None:
    return None if isinstance(value, Missing) else float(value)


def _lacking(value: Scalar) -> tuple[str, ...] | UnsetType:
    return value.reasons if isinstance(value, Missing) else UNSET


class PValue(Document, frozen=True, omit_defaults=True):
    """A registered test of significance."""

    test: Annotated[
        Significance,
        Shown("name", str, "Its name in the rules.", attrgetter("id")),
        Shown("endpoint", str, "The endpoint that it is of.", attrgetter("endpoint")),
        Shown("method", str, "As `sign flip`, `wilcoxon`, `mcnemar`.", attrgetter("method")),
        Shown("over", str, "What its differences are of: `seeds` or `tasks`.", attrgetter("over")),
        Shown(
            "alternative",
            str,
            "The side of the mean: `two-sided`, `greater`, `less`.",
            attrgetter("alternative"),
        ),
        Shown("made", str, "How it is made, in words.", attrgetter("made")),
    ]
    units: Annotated[int, Shown("n", int, "Differences; 0 where p is missing.")]
    differing: Annotated[int, about("Those that are not zero.")]
    p: Annotated[
        Scalar,
        Shown("p", str | None, "The p-value, exactly.", _exactly),
        Shown("p_decimal", float | None, "The same, rounded.", _roughly),
        Shown("p_missing", list[str] | UnsetType, "What is missing for it.", _lacking),
    ]
    family: Annotated[
        Family | None,
        Shown("family", str, "The family that it is adjusted in.", attrgetter("id")),
        Shown("adjusted_by", str, "How, in words.", attrgetter("made")),
    ] = None
    adjusted: Annotated[
        Scalar | None,
        Shown("adjusted", str | None, "The adjusted p-value, exactly.", _exactly),
        Shown("adjusted_decimal", float | None, "The same, rounded.", _roughly),
        Shown("adjusted_missing", list[str] | UnsetType, "What is missing for it.", _lacking),
    ] = None

    @property
    def words(self) -> str:
        """What it gives, and how it is made, in words."""
        if isinstance(self.p, Missing):
            return f"no p-value ({self.test.made}): {'; '.join(self.p.reasons)}"
        counted = f"{self.units} {self.test.over}, {self.differing} with a difference"
        said = f"p = {float(self.p):.4g} ({self.test.made}; {counted})"
        if self.family is None or self.adjusted is None:
            return said
        value = self.adjusted
        number = "none" if isinstance(value, Missing) else f"{float(value):.4g}"
        return f"{said}; {number} {self.family.made}"


def p_value(name: str, book: RuleBook, value: ValueOf, table: TableOf) -> PValue:
    """Make a registered test; adjusted where it is in a family."""
    made = {other: _made(book.tests[other], book, value, table) for other in book.adjusted_with(name)}
    test, family, own = book.tests[name], book.family_of(name), made[name]
    adjusted = None if family is None else _adjusted(family, made)[name]
    if isinstance(own, Missing):
        return PValue(test, 0, 0, own, family, adjusted)
    return PValue(test, own.units, own.differing, own.p_value, family, adjusted)


def _made(test: Significance, book: RuleBook, value: ValueOf, table: TableOf) -> ExactTest | Missing:
    from toolkit.estimators import mcnemar_test, sign_flip_test, wilcoxon_test

    endpoint = book.endpoints[test.endpoint]
    differences = _of_seeds(value(test.endpoint)) if test.over == SEEDS else _of_tasks(table(endpoint))
    if isinstance(differences, Missing):
        return differences
    try:
        if test.method == MCNEMAR:
            return mcnemar_test(differences, test.alternative)
        if test.method == SIGN_FLIP:
            return sign_flip_test(differences, test.alternative)
        return wilcoxon_test(differences, test.alternative, test.zeros)
    except ValueError as error:
        return unavailable(f"{test.id} of {test.endpoint}: {error}")


def _of_seeds(value: Scalar | Series[Fraction]) -> list[int] | Missing:
    """Return the differences of seeds over their common denominator."""
    numbers = whole(value.values if isinstance(value, Series) else (value,))
    if isinstance(numbers, Missing):
        return numbers
    scale = lcm(*(number.denominator for number in numbers))
    return [int(number * scale) for number in numbers]


def _of_tasks(table: Table | Missing) -> list[int] | Missing:
    """Return the difference of each task, all seeds together that have it, as whole numbers."""
    if isinstance(table, Missing):
        return table
    there = [[number or 0 for number in of] for of in table]
    sums = [sum(map(Fraction, of)) for of in zip(*there, strict=True)]
    counted = all(isinstance(number, int) for of in there for number in of)
    return [int(total) if counted else round(total * GRID) for total in sums]


def _adjusted(family: Family, made: Mapping[str, ExactTest | Missing]) -> dict[str, Scalar]:
    """Return the adjusted p-values of a family; with one of its p-values missing it has none."""
    from toolkit.estimators import benjamini_hochberg, holm

    gaps = {name: one for name, one in made.items() if isinstance(one, Missing)}
    if gaps:
        reasons = (
            f"family {family.id} lacks p({name}): {gap.reasons[0]}"
            + (f", and {len(gap.reasons) - 1} more" if len(gap.reasons) > 1 else "")
            for name, gap in gaps.items()
        )
        return dict.fromkeys(made, Missing(all(gap.not_run for gap in gaps.values()), tuple(reasons)))
    adjust = holm if family.method == HOLM else benjamini_hochberg
    given = [one.p_value for one in made.values() if not isinstance(one, Missing)]
    return dict(zip(made, adjust(given), strict=True))


RESAMPLED = ("seed pairs", "tasks with all their schedules")


class Resampler:
    """Computes intervals from a study's episodes; endpoints on as many seeds and tasks share resamples.

    Args:
        registers: a study with episode rows.
        plan: the registered runs.
    """

    def __init__(self, registers: Tables, plan: Plan) -> None:
        self._registers = registers
        self._plan = plan
        self._counted: dict[str, Counts | Missing] = {}
        self._weights: dict[tuple[int, int, int, int], bootstrap.BootstrapWeights] = {}
        self._drawn: Draws = {}

    def interval(self, spec: IntervalSpec, endpoint: Endpoint) -> Interval | Missing:
        """Compute a registered interval.

        1. It is of an endpoint that is a weighted mean of episodes, with enough seeds and tasks.
        2. Every seed has its deciding runs.
        3. At every step their episodes are as many as `evaluations` says, and those registered.
        4. Take the difference of every seed and task, over schedules and steps.
        5. Where a seed goes without some of the tasks, have its others count for them: `linearized`.
        6. Resample seed pairs and tasks; or make an interval of the tasks.
        """
        unknown = _unknown(spec, endpoint)  # 1
        if unknown:
            return unavailable(unknown)
        differences = self.differences(endpoint)  # 2, 3, 4
        if isinstance(differences, Missing):
            return differences
        numerators, denominator = linearized(differences[0]), differences[1]  # 5
        if len(numerators[0]) < bootstrap.SMALLEST_SAMPLE:
            return unavailable(f"of the tasks of {endpoint.id}, fewer than two are left: nothing to resample")
        if spec.method in OVER_TASKS:  # 6
            return interval_over_tasks(spec, numerators, denominator, self._drawn)
        drawn = self._resampled(spec, numerators, denominator)
        return computed_interval(spec, drawn.low, drawn.high, drawn.low_error or 0, drawn.high_error or 0)

    def differences(self, endpoint: Endpoint) -> tuple[Differences, int] | Missing:
        """Return the difference of each seed and task over one denominator, or what is missing for it.

        None where the seed goes without the task.
        """
        if not is_mean_of_episodes(endpoint):
            return unavailable(f"{endpoint.id} is not a mean of episodes by seed")
        runs = self._plan.deciding_runs(endpoint, self._registers.rows("runs"))
        run_ids = {key: run for key, run in runs.items() if isinstance(run, str)}
        if len(run_ids) < len(runs):
            return together(run for run in runs.values() if isinstance(run, Missing))
        if endpoint.id not in self._counted:
            self._counted[endpoint.id] = self._counts(endpoint, tuple(run_ids.values()))
        counts = self._counted[endpoint.id]
        return counts if isinstance(counts, Missing) else _differences(endpoint, run_ids, counts)

    def _counts(self, endpoint: Endpoint, runs: Sequence[str]) -> Counts | Missing:
        counts = episode_counts(endpoint, runs, self._registers, self._plan)
        table = rows_of(endpoint, self._registers, self._plan)
        if isinstance(table, Missing):
            return table
        gaps = [self._gap(endpoint, counts, table, run, step) for run in runs for step in endpoint.steps]
        reasons = tuple(gap for gap in gaps if gap)
        if reasons:
            return Missing(not_run=False, reasons=reasons)
        first = set(counts[runs[0], endpoint.steps[0]])
        if not excludes(endpoint) and any(set(counted) != first for counted in counts.values()):
            return unavailable(f"the runs of {endpoint.id} did not meet the same tasks")
        return counts

    def _gap(self, endpoint: Endpoint, counts: Counts, table: Sequence[Row], run: str, step: int) -> str:
        """Return what a run's evaluation lacks of the registered one."""
        tasks = counts.get((run, step))
        place = [*(f"{name}={value}" for name, value in endpoint.where.items()), *in_words(endpoint)]
        row_key = f"{run} at step {step}, {', '.join(place)}"
        if not tasks:
            return f"{EPISODES} has no row of {row_key}"
        row = counted_at(endpoint, table, run, step)
        if isinstance(row, Missing):
            return "; ".join(row.reasons)
        count, of = endpoint.outcome.columns
        sums = [t.successes for t in tasks.values()]
        counted = (fsum(sums), sum(t.episodes for t in tasks.values()))
        # Counts are exact; a sum of scores was rounded in every task, and again.
        rounded = fsum(ulp(number) for number in (*sums, row[count]) if isinstance(number, float))
        if counted[1] != row[of] or abs(counted[0] - row[count]) > rounded:
            raise DamagedError(
                f"{EPISODES} contradicts {endpoint.register}",
                expected=f"{row[count]} {count} of {row[of]} {of}, as in {endpoint.register}",
                found=f"{counted[0]} of {counted[1]}",
                where=row_key,
                remedy="restore the files, or rebuild the registers",
            )
        registered = (endpoint.schedules, endpoint.schedules - 1)
        whole = all((t.episodes, t.last_schedule) == registered for t in tasks.values())
        if (len(tasks) != endpoint.tasks and not row.get(EXCLUDED)) or not whole:
            return f"{EPISODES} of {row_key} are not {endpoint.tasks} tasks × {endpoint.schedules} schedules"
        return ""

    def _resampled(
        self, spec: IntervalSpec, numerators: Sequence[Sequence[int | float]], denominator: int
    ) -> bootstrap.BootstrapInterval:
        level = float(spec.level)
        if spec.crossing == "nested":
            table = [[n / denominator for n in row] for row in numerators]
            return bootstrap.nested_bootstrap(table, spec.resamples, spec.rng_seed, level)
        key = (len(numerators), len(numerators[0]), spec.resamples, spec.rng_seed)
        if key not in self._weights:
            self._weights[key] = bootstrap.draw_weights(*key)
        if not all(isinstance(n, int) for row in numerators for n in row):
            table = [[n / denominator for n in row] for row in numerators]
            return bootstrap.crossed_bootstrap(table, self._weights[key], level)
        return bootstrap.counted_bootstrap(numerators, denominator, self._weights[key], level)


def is_mean_of_episodes(endpoint: Endpoint) -> bool:
    """Whether an endpoint is a weighted mean of episodes by seed: each task has a value of its own."""
    counted = endpoint.outcome.columns[0] in COUNTED_BY_TASK and endpoint.outcome.of == EPISODES
    return endpoint.by == "seed" and counted and endpoint.threshold is None and bool(endpoint.steps)


def _unknown(spec: IntervalSpec, endpoint: Endpoint) -> str:
    """Return why an interval cannot be computed here, or nothing."""
    over_tasks = spec.method in OVER_TASKS
    if not over_tasks and spec.resampled != RESAMPLED:
        return (
            f"{spec.id} is a {spec.method} of {'; '.join(spec.resampled)}, "
            f"and one of {'; '.join(RESAMPLED)} can be computed"
        )
    if not is_mean_of_episodes(endpoint):
        return f"{endpoint.id} is not a mean of episodes by seed, which is what can be resampled"
    if not endpoint.tasks:
        return f"the size of the evaluation set of {endpoint.id} is not registered"
    if min(endpoint.tasks if over_tasks else len(endpoint.seeds), endpoint.tasks) < bootstrap.SMALLEST_SAMPLE:
        return (
            f"{endpoint.id} has {len(endpoint.seeds)} seeds and {endpoint.tasks} tasks: nothing to resample"
        )
    return ""


def step_weights(endpoint: Endpoint) -> tuple[Fraction, ...]:
    """Return the weight of each step in an endpoint's value; they sum to one, and of a gain to zero."""
    if endpoint.over_steps == "auc":
        return auc_weights(endpoint.steps)
    if endpoint.over_steps == "auc_gain":
        first, *others = auc_weights(endpoint.steps)
        return (first - 1, *others)
    return tuple(Fraction(1, len(endpoint.steps)) for _ in endpoint.steps)


def _differences(
    endpoint: Endpoint, runs: Mapping[tuple[str, int], str], counts: Counts
) -> tuple[Differences, int]:
    """Return the difference of each seed and task over one denominator: of counts, as whole numbers."""
    weights = step_weights(endpoint)
    scale = lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * scale) for weight in weights]
    tasks = sorted({task for counted in counts.values() for task in counted})
    table: Differences = []
    for seed in endpoint.seeds:
        of_task: dict[int, int | float] = {}
        for sign, arm in zip((1, -1), endpoint.arms, strict=False):
            for weight, step in zip(whole, endpoint.steps, strict=True):
                for task, counted in counts[runs[arm, seed], step].items():
                    of_task[task] = of_task.get(task, 0) + sign * weight * counted.successes
        table.append([of_task.get(task) for task in tasks])
    return table, scale * endpoint.schedules


def linearized(table: Differences) -> list[list[int | float]]:
    """Return differences of seeds and tasks with those in the places of the ones that a seed goes without.

    Such a place has the seed's own mean, and the deviations of its other tasks grow by what it lacks of them:
    the mean stays, and moves with each task as that of the tasks that are there (its linearization).
    """
    if not any(value is None for row in table for value in row):
        return cast("list[list[int | float]]", table)
    made: list[list[int | float]] = []
    for row in table:
        there = [value for value in row if value is not None]
        mean, grown = fsum(there) / len(there), len(row) / len(there)
        made.append([mean if value is None else mean + grown * (value - mean) for value in row])
    return made
