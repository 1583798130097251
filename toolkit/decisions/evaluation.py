"""Evaluating expressions and formulas, and whether a rule can pass and can miss."""

import operator as operators
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any, cast

from toolkit.decisions.measure import members
from toolkit.errors import IncompleteError, RuleError
from toolkit.rules import values as v
from toolkit.rules.endpoints import Endpoint
from toolkit.rules.expressions import Binary, Call, Expression, Name, Number, names_in
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.rules import MARGINS, NON_INFERIOR, Criterion, Statistic, expanded
from toolkit.rules.values import OF_PAIRS, SUMMARIES, Missing, Scalar, Series, Truth, Value, kleene_all

Resolve = Callable[[str, str], Value]
"""(role, name) → value; the role is `value`, `lower`, `upper`, `p`, `adjusted` or `passes`."""

# Far beyond any endpoint, and still a double.
LARGEST = 10**100

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operators.ge,
    "<=": operators.le,
    ">": operators.gt,
    "<": operators.lt,
    "=": operators.eq,
}
CALCULATE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
}
_NAMED = ("lower", "upper", "p", "adjusted", "passes")


def evaluate(expression: Expression, resolve: Resolve) -> Value:
    """Return the value of an expression whose kinds were checked."""
    match expression:
        case Number(_, value):
            return value
        case Name(name):
            return resolve("value", name)
        case Binary(operator, left, right):
            return _binary(operator, evaluate(left, resolve), evaluate(right, resolve))
        case Call(operator, (Name(name),)) if operator in _NAMED:
            return resolve(operator, name)
        case Call(operator, _) if operator in MARGINS:
            return evaluate(expanded(expression), resolve)
        case Call(operator, arguments):
            return _call(operator, [evaluate(argument, resolve) for argument in arguments])


def subject(expression: Expression) -> Expression | None:
    """Return the part of a test whose number a reader wants to see, or None for a test of tests."""
    match expression:
        case Call("each" | "majority" | "not", (inside,)):
            return subject(inside)
        case Call(operator, _) if operator == NON_INFERIOR:
            return subject(expanded(expression))
        case Call("within" | "between", (inside, *_)) | Call("decreasing", (inside,)):
            return inside
        case Binary(operator, left, _) if operator in COMPARE:
            return left
        case _:
            return None


def compared_with(expression: Expression) -> Expression | None:
    """Return what the subject of a test is compared with, where that is no number as written."""
    match expression:
        case Call("each" | "majority" | "not", (inside,)):
            return compared_with(inside)
        case Binary(operator, _, right) if operator in COMPARE:
            return right if any(names_in(right)) else None
        case _:
            return None


def _call(operator: str, values: list[Value]) -> Value:
    if operator in SUMMARIES:
        return _reduce(operator, cast("Series[Fraction]", values[0]))
    if operator in OF_PAIRS:
        return _of_pairs(operator, *cast("list[Series[Fraction]]", values))
    return _APPLY[operator](values)


def _reduce(operator: str, series: Series[Fraction]) -> Scalar:
    members = series.present()
    if isinstance(members, Missing):
        return members
    return _bounded_number(SUMMARIES[operator](members)) if members else _empty(operator)


def _of_pairs(operator: str, first: Series[Fraction], second: Series[Fraction]) -> Scalar:
    _check_members(operator, first, second)
    members = v.whole((first.present(), second.present()))
    if isinstance(members, Missing):
        return members
    return _bounded_number(OF_PAIRS[operator](*members)) if first.items else _empty(operator)


def _list(values: list[Value]) -> Value:
    """Return numbers as a series whose members are their places, from 1."""
    numbers = cast("list[Scalar]", values)
    return Series("place", tuple((str(place), number) for place, number in enumerate(numbers, 1)))


def _quantify(
    operator: str, quantifier: Callable[[Sequence[Truth]], Truth]
) -> Callable[[list[Value]], Value]:
    def apply(values: list[Value]) -> Value:
        truths = cast("Series[bool]", values[0]).values
        return quantifier(truths) if truths else _empty(operator)

    return apply


def _count(values: list[Value]) -> Value:
    present = cast("Series[bool]", values[0]).present()
    if isinstance(present, Missing):
        return present
    return Fraction(sum(present)) if present else _empty("count")


def _rest(values: list[Value]) -> Value:
    series = cast("Series[Fraction]", values[0])
    return Series(series.unit, series.items[1:])


def _bounded(inside: Callable[[Fraction, Fraction, Fraction], bool]) -> Callable[[list[Value]], Value]:
    def apply(values: list[Value]) -> Value:
        value, *rest = values
        bounds = v.whole(cast("list[Scalar]", rest))
        if not isinstance(bounds, Missing):
            return _each_number(lambda x: inside(x, *bounds), value)
        return (
            Series(value.unit, tuple((k, bounds) for k, _ in value.items))
            if isinstance(value, Series)
            else bounds
        )

    return apply


def _decreasing(values: list[Value]) -> Value:
    members = cast("Series[Fraction]", values[0]).values
    falls = [cast("Truth", _pair("<", after, before)) for before, after in pairwise(members)]
    return v.kleene_all(falls) if falls else _empty("decreasing")


def _each_number(function: Callable[[Fraction], Fraction | bool], value: Value) -> Value:
    if isinstance(value, Series):
        return cast("Value", cast("Series[Fraction]", value).map(function))
    return value if isinstance(value, Missing) else function(cast("Fraction", value))


_APPLY: dict[str, Callable[[list[Value]], Value]] = {
    "all": lambda values: v.kleene_all(cast("list[Truth]", values)),
    "any": lambda values: v.kleene_any(cast("list[Truth]", values)),
    "not": lambda values: v.kleene_not(cast("Truth", values[0])),
    "each": _quantify("each", v.kleene_all),
    "majority": _quantify("majority", v.kleene_majority),
    "count": _count,
    "within": _bounded(lambda x, centre, margin: abs(x - centre) <= margin),
    "between": _bounded(lambda x, low, high: low <= x <= high),
    "decreasing": _decreasing,
    "rest": _rest,
    "list": _list,
    "abs": lambda values: _each_number(abs, values[0]),
}


def _binary(operator: str, left: Value, right: Value) -> Value:
    if isinstance(left, Series) and isinstance(right, Series):
        _check_members(operator, left, right)
        pairs = zip(left.items, right.items, strict=True)
        items = tuple((key, _pair(operator, a, b)) for (key, a), (_, b) in pairs)
        return cast("Value", Series(left.unit, items))
    if isinstance(left, Series):
        return cast("Value", Series(left.unit, tuple((k, _pair(operator, a, right)) for k, a in left.items)))
    if isinstance(right, Series):
        return cast("Value", Series(right.unit, tuple((k, _pair(operator, left, b)) for k, b in right.items)))
    return _pair(operator, left, right)


def _pair(operator: str, left: object, right: object) -> Fraction | bool | Missing:
    numbers = v.whole(cast("tuple[Scalar, Scalar]", (left, right)))
    if isinstance(numbers, Missing) or operator in COMPARE:
        return numbers if isinstance(numbers, Missing) else bool(COMPARE[operator](*numbers))
    if operator == "/" and numbers[1] == 0:
        return Missing(not_run=False, reasons=("a quotient over zero",))
    return _bounded_number(Fraction(CALCULATE[operator](*numbers)))


def _bounded_number(value: Scalar) -> Scalar:
    if isinstance(value, Missing) or abs(value) < LARGEST:
        return value
    return Missing(not_run=False, reasons=("a number beyond all bounds",))


def _check_members(operator: str, left: Series[Any], right: Series[Any]) -> None:
    if [key for key, _ in left.items] != [key for key, _ in right.items]:
        raise RuleError("two series with different members are combined", where=operator)


def _empty(operator: str) -> Missing:
    return Missing(not_run=False, reasons=(f"{operator} of an empty series",))


# Ten seconds a question, in milliseconds; those of the shipped registration take a few.
LIMIT = 10_000
# Digits of a value that the solver has only as the root of a polynomial.
DIGITS = 20


@dataclass(frozen=True)
class Example:
    """Values within the declared ranges: of endpoints and statistics, of the ends of intervals, of tests."""

    endpoints: dict[str, Fraction | Series[Fraction]]  # of endpoints and statistics
    intervals: dict[str, tuple[Fraction, Fraction]]  # lower and upper end
    tests: dict[str, tuple[Fraction, Fraction]] = field(default_factory=dict)  # p, plain and adjusted


@dataclass(frozen=True)
class _Number:
    """A number as a formula, and when there is one: never over zero, never beyond all bounds."""

    term: Any
    defined: Any


@dataclass(frozen=True)
class _Truth:
    """When a test holds and when it is lost; where neither, it has no answer."""

    holds: Any
    fails: Any


class Formulas:
    """Tests as formulas over what the declared ranges allow; the same names are the same unknowns.

    A series is a tuple of (member, number or truth), a statistic an unknown within its own range. Every case
    is its namesake in `evaluation`.
    """

    def __init__(self, book: RuleBook, where: str) -> None:
        self._z3 = solver()
        self._context = self._z3.Context()  # its own: an example depends on no earlier question
        self._book = book
        self._where = where
        self._bounds: list[Any] = []
        self._endpoints: dict[str, Any] = {}
        self._intervals: dict[str, tuple[_Number, _Number]] = {}
        self._tests: dict[str, tuple[_Number, _Number]] = {}
        self._rules: dict[str, _Truth] = {}
        self._yes, self._no = (self._z3.BoolVal(value, self._context) for value in (True, False))

    def example(self, condition: Any) -> Example | None:
        """Return values that meet a condition; None where there are none."""
        solver = self._z3.Solver(ctx=self._context)
        solver.set(timeout=LIMIT)
        solver.add(*self._bounds, condition)
        answer = solver.check()
        if answer == self._z3.unsat:
            return None
        if answer != self._z3.sat:
            raise undecided(self._where, solver.reason_unknown())
        model = solver.model()

        def number(value: _Number) -> Fraction:
            solved = model.eval(value.term, model_completion=True)
            rational = solved if self._z3.is_rational_value(solved) else solved.approx(DIGITS)
            return Fraction(rational.as_fraction())

        def member_by_member(name: str, value: Any) -> Fraction | Series[Fraction]:
            if isinstance(value, _Number):
                return number(value)
            by = cast("Endpoint", self._book.declared(name)).by
            return Series(by, tuple((k, number(v)) for k, v in value))

        return Example(
            {name: member_by_member(name, value) for name, value in self._endpoints.items()},
            *(
                {name: (number(first), number(second)) for name, (first, second) in pairs.items()}
                for pairs in (self._intervals, self._tests)
            ),
        )

    def ranges(self) -> str:
        """Return what the formulas are about, in words."""
        among = {name: name for name in self._endpoints}
        among |= {f"both ends of {name}": self._book.intervals[name].endpoint for name in self._intervals}
        declared = {words: self._book.declared(name) for words, name in among.items()}
        said = [
            f"{words} from {float(e.low):.15g} to {float(e.high):.15g} {e.unit}"
            for words, e in declared.items()
        ]
        for name in self._tests:
            smallest = (f"{float(least):.4g}" for least in self._book.smallest_p(name))
            said.append(f"p({name}) from {' to 1, adjusted from '.join(smallest)} to 1")
        return "; ".join(said)

    def of(self, expression: Expression) -> Any:
        """Return an expression as formulas: a number, a truth, or a series of them."""
        match expression:
            case Number(_, value):
                return _Number(self._exact(value), self._yes)
            case Name(name):
                return self._endpoint(name)
            case Binary(operator, left, right):
                return self._binary(operator, self.of(left), self.of(right))
            case Call():
                return self._applied(expression)

    def _applied(self, call: Call) -> Any:
        match call:
            case Call("passes", (Name(name),)):
                return self._passes(name)
            case Call("lower" | "upper" as end, (Name(name),)):
                return self._interval(name)[end == "upper"]
            case Call("p" | "adjusted" as role, (Name(name),)):
                return self._test(name)[role == "adjusted"]
        if call.operator in MARGINS:
            return self.of(expanded(call))
        return self._call(call.operator, [self.of(argument) for argument in call.arguments])

    def all(self, truths: Sequence[_Truth]) -> _Truth:
        """Return a conjunction: lost as soon as one is lost; without an answer where there is nothing."""
        if not truths:
            return _Truth(self._no, self._no)
        return _Truth(self._z3.And([t.holds for t in truths]), self._z3.Or([t.fails for t in truths]))

    def _call(self, operator: str, values: list[Any]) -> Any:
        members = [member for _, member in values[0]] if isinstance(values[0], tuple) else values
        match operator:
            case "all" | "each":
                return self.all(members)
            case "any":
                return _not(self.all([_not(value) for value in values]))
            case "not":
                return _not(values[0])
            case "majority":
                return self._majority(members)
            case "decreasing":
                falls = [self._decided(b.term < a.term, a, b) for a, b in pairwise(members)]
                return self.all(falls)
            case _:
                return self._figure(operator, values[0], values[1:], members)

    def _figure(self, operator: str, value: Any, bounds: list[Any], members: list[Any]) -> Any:
        if operator in OF_PAIRS:
            return self._of_pairs(operator, value, bounds[0])
        if operator == "list":
            return tuple((str(place), member) for place, member in enumerate(members, 1))
        return self._of_one(operator, value, bounds, members)

    def _of_one(self, operator: str, value: Any, bounds: list[_Number], members: list[Any]) -> Any:
        match operator:
            case "rest":
                return value[1:]
            case "abs":
                return _each(lambda x: _Number(self._abs(x.term), x.defined), value)
            case "within" | "between":
                return _each(lambda x: self._bounded(operator, x, *bounds), value)
            case "count":
                bits = [_Number(self._bit(t.holds), self._z3.Or(t.holds, t.fails)) for t in members]
                return self._reduce("sum", bits)
            case "variance":
                return self._variance(members)
            case _:
                return self._reduce(operator, members)

    def _reduce(self, operator: str, numbers: list[_Number]) -> _Number:
        if not numbers:
            return _Number(self._exact(0), self._no)
        first, *others = terms = [number.term for number in numbers]
        term = terms[-1] if operator == "last" else first
        if operator in ("sum", "mean"):
            term = self._z3.Sum(terms) / self._exact(len(terms) if operator == "mean" else 1)
        if operator in ("min", "max"):
            for other in others:
                term = self._z3.If(other < term if operator == "min" else other > term, other, term)
        return _Number(term, self._z3.And([number.defined for number in numbers]))

    def _variance(self, numbers: list[_Number]) -> _Number:
        apart = self._apart(numbers)
        return self._quotient([a * a for a in apart], [self._exact(max(len(apart) - 1, 0))], numbers)

    def _of_pairs(self, operator: str, first: Any, second: Any) -> _Number:
        self._check_members(first, second)
        ones, others = ([number for _, number in series] for series in (first, second))
        if operator == "slope":
            y, x = self._apart(ones), self._apart(others)
            above, below = [a * b for a, b in zip(y, x, strict=True)], [b * b for b in x]
        else:
            pairs = list(combinations(zip(ones, others, strict=True), 2))
            above = [self._order(a.term - c.term, b.term - d.term) for (a, b), (c, d) in pairs]
            below = [self._exact(len(pairs))]
        return self._quotient(above, below, [*ones, *others])

    def _quotient(self, above: list[Any], below: list[Any], numbers: list[_Number]) -> _Number:
        """Return a quotient of two sums, which has to be defined, and made of what is."""
        over, under = (self._z3.Sum([self._exact(0), *terms]) for terms in (above, below))
        numerator, denominator = (_Number(self._z3.simplify(term), self._yes) for term in (over, under))
        made = cast("_Number", self._pair("/", numerator, denominator))
        return _Number(made.term, self._z3.And(made.defined, *[number.defined for number in numbers]))

    def _apart(self, numbers: list[_Number]) -> list[Any]:
        """Return the distances from the mean."""
        terms = [number.term for number in numbers]
        centre = self._z3.Sum([self._exact(0), *terms]) / self._exact(max(len(terms), 1))
        return [term - centre for term in terms]

    def _order(self, first: Any, second: Any) -> Any:
        """Return one where two pairs of numbers are ordered alike, minus one where not, zero if tied."""
        either, both = self._z3.Or, self._z3.And
        alike = either(both(first > 0, second > 0), both(first < 0, second < 0))
        unlike = either(both(first > 0, second < 0), both(first < 0, second > 0))
        return self._bit(alike) - self._bit(unlike)

    def _majority(self, truths: list[_Truth]) -> _Truth:
        if not truths:
            return self.all([])
        won = self._z3.Sum([self._bit(truth.holds) for truth in truths])
        lost = self._z3.Sum([self._bit(truth.fails) for truth in truths])
        return _Truth(2 * won > len(truths), 2 * lost >= len(truths))

    def _bounded(self, operator: str, x: _Number, second: _Number, third: _Number) -> _Truth:
        inside = self._z3.And(second.term <= x.term, x.term <= third.term)
        if operator == "within":
            inside = self._abs(x.term - second.term) <= third.term
        return self._decided(inside, x, second, third)

    def _binary(self, operator: str, left: Any, right: Any) -> Any:
        if not isinstance(left, tuple):
            return _each(lambda value: self._pair(operator, left, value), right)
        if not isinstance(right, tuple):
            return _each(lambda value: self._pair(operator, value, right), left)
        self._check_members(left, right)
        return tuple((k, self._pair(operator, a, b)) for (k, a), (_, b) in zip(left, right, strict=True))

    def _check_members(self, left: Any, right: Any) -> None:
        if [key for key, _ in left] != [key for key, _ in right]:
            raise RuleError("two series with different members are combined", where=self._where)

    def _pair(self, operator: str, left: _Number, right: _Number) -> _Number | _Truth:
        term = (COMPARE | CALCULATE)[operator](left.term, right.term)
        if operator in COMPARE:
            return self._decided(term, left, right)
        bounds = [term < LARGEST, term > -LARGEST, right.term != 0 if operator == "/" else self._yes]
        return _Number(term, self._z3.And(left.defined, right.defined, *bounds))

    def _decided(self, test: Any, *numbers: _Number) -> _Truth:
        defined = [number.defined for number in numbers]
        return _Truth(self._z3.And(*defined, test), self._z3.And(*defined, self._z3.Not(test)))

    def _passes(self, name: str) -> _Truth:
        if name not in self._rules:
            rule = self._book.rules[name]
            self._rules[name] = self.all([self.of(c.expression) for c in rule.read_as(rule.binding)])
        return self._rules[name]

    def _endpoint(self, name: str) -> Any:
        """Return the unknown of an endpoint, or those of its members; of a statistic, its own."""
        if name not in self._endpoints:
            declared = self._book.declared(name)
            names = [] if isinstance(declared, Statistic) else members(declared)
            series = tuple((member, self._unknown(f"{name}[{member}]", name)) for member in names)
            self._endpoints[name] = series or self._unknown(name, name)
        return self._endpoints[name]

    def _interval(self, name: str) -> tuple[_Number, _Number]:
        """Return the unknown ends of an interval: in order, and within the range of its endpoint."""
        if name not in self._intervals:
            endpoint = self._book.intervals[name].endpoint
            low, high = (self._unknown(f"{end}({name})", endpoint) for end in ("lower", "upper"))
            self._bounds.append(low.term <= high.term)
            self._intervals[name] = (low, high)
        return self._intervals[name]

    def _test(self, name: str) -> tuple[_Number, _Number]:
        """Return the unknown p of a test, and the adjusted one, which is never smaller."""
        if name not in self._tests:
            plain, adjusted = (
                self._between(f"{role}({name})", smallest, Fraction(1))
                for role, smallest in zip(("p", "adjusted"), self._book.smallest_p(name), strict=True)
            )
            self._bounds.append(plain.term <= adjusted.term)
            self._tests[name] = (plain, adjusted)
        return self._tests[name]

    def _unknown(self, name: str, endpoint: str) -> _Number:
        declared = self._book.declared(endpoint)
        return self._between(name, declared.low, declared.high)

    def _between(self, name: str, low: Fraction, high: Fraction) -> _Number:
        term = self._z3.Real(name, self._context)
        self._bounds += [term >= self._exact(low), term <= self._exact(high)]
        return _Number(term, self._yes)

    def _exact(self, value: Fraction | int) -> Any:
        return self._z3.RealVal(str(value), self._context)

    def _abs(self, term: Any) -> Any:
        return self._z3.If(term >= 0, term, -term)

    def _bit(self, truth: Any) -> Any:
        return self._z3.If(truth, self._exact(1), self._exact(0))


def _each(function: Callable[[_Number], Any], value: Any) -> Any:
    return tuple((k, function(v)) for k, v in value) if isinstance(value, tuple) else function(value)


def _not(truth: _Truth) -> _Truth:
    return _Truth(truth.fails, truth.holds)


def undecided(where: str, reason: str) -> RuleError:
    """Return the error for a question that the solver does not answer."""
    return RuleError(
        "whether a rule can pass and can miss could not be decided",
        expected=f"an answer within {LIMIT} ms",
        found=reason,
        where=where,
        remedy="write its tests with fewer products and quotients of endpoints, or declare a statistic: it "
        "counts as an unknown within its range",
    )


def solver() -> Any:
    """Return the solver, z3."""
    try:
        import z3
    except ImportError:
        raise IncompleteError(
            "the solver that decides whether a rule can be lost is not installed",
            expected="z3-solver",
            remedy="pip install 'paired-rollouts-toolkit[freeze]'",
        ) from None
    return z3


@dataclass(frozen=True)
class Outcomes:
    """That both outcomes of a rule can happen, each shown by an example."""

    rule: str  # rule, reading: the rule, and its reading where it has several
    reading: str
    passes: Example  # values at which everything that the reading asks for holds
    misses: Example  # values at which something of it does not; a prediction in parts may then be met in part


def check_not_vacuous(book: RuleBook, only: Collection[str] | None = None) -> None:
    """Check that every rule can pass and can miss, in every reading, and that every criterion decides."""
    wanted = set(book.rules) if only is None else {book.rule(name).id for name in only}
    for rule in (rule for rule in book.rules.values() if rule.id in wanted):
        for reading in rule.readings or ("",):
            outcomes(book, rule.id, reading)
        for criterion in rule.criteria:
            name = f"criterion {criterion.id} of rule {rule.id}"
            for holds, never in ((True, "can never hold"), (False, "can never fail")):
                _example(book, [criterion], f"{name} {never}", f"rules.{rule.id}", holds=holds)


def outcomes(book: RuleBook, rule_id: str, reading: str = "") -> Outcomes:
    """Return values at which a rule passes, and values at which it misses."""
    rule = book.rule(rule_id)
    chosen = reading or rule.binding
    name = f"rule {rule.id}, read as {chosen!r}," if chosen else f"rule {rule.id}"
    passes, misses = (
        _example(book, rule.read_as(chosen), f"{name} {never}", f"rules.{rule.id}", holds=holds)
        for holds, never in ((True, "can never pass"), (False, "can never miss"))
    )
    return Outcomes(rule.id, chosen, passes, misses)


def _example(
    book: RuleBook, criteria: Sequence[Criterion], problem: str, where: str, *, holds: bool
) -> Example:
    """Return values at which all criteria hold, or at which one is lost; the problem, if there are none."""
    formulas = Formulas(book, where)
    together = formulas.all([formulas.of(criterion.expression) for criterion in criteria])
    example = formulas.example(together.holds if holds else together.fails)
    if example is None:
        raise RuleError(
            problem,
            expected="values within the declared ranges at which it does, and others at which it does not",
            found=f"none: {' and '.join(c.test for c in criteria)}, over {formulas.ranges()}",
            where=where,
            remedy="correct the number that the test compares with (a fraction is not in percentage points) "
            "or the range; or leave the test out: what cannot turn out otherwise tests nothing",
        )
    if _evaluated(book, criteria, example) is not holds:
        raise undecided(where, "the solver's values are not exact fractions")
    return example


def _evaluated(book: RuleBook, criteria: Sequence[Criterion], example: Example) -> Truth:
    """Return what criteria come to at given values, evaluated as a study's are."""

    def resolve(role: str, name: str) -> Value:
        if role == "value":
            return example.endpoints[name]
        if role == "passes":
            rule = book.rules[name]
            return _evaluated(book, rule.read_as(rule.binding), example)
        if role in ("p", "adjusted"):
            return example.tests[name][role == "adjusted"]
        return example.intervals[name][role == "upper"]

    truths = [evaluate(criterion.expression, resolve) for criterion in criteria]
    return kleene_all([truth for truth in truths if not isinstance(truth, Fraction | Series)])
