"""Expressions of a rule: what their text may be, and what it is parsed to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from toolkit.errors import RuleError


class Kind(Enum):
    """What an expression gives."""

    NUMBER = "a number"
    NUMBERS = "a series of numbers"
    TRUTH = "true or false"
    TRUTHS = "a series of true or false"
    INTERVAL = "an interval"
    RULE = "a rule"
    TEST = "a test"


@dataclass(frozen=True)
class Number:
    """A decimal number, exactly as written."""

    text: str
    value: Fraction


@dataclass(frozen=True)
class Name:
    """An endpoint, a statistic, an interval, a test or a rule."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operator applied to arguments."""

    operator: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Binary:
    """Arithmetic or comparison."""

    operator: str
    left: Expression
    right: Expression


Expression = Number | Name | Call | Binary

COMPARISONS = (">=", "<=", ">", "<", "=")
ARITHMETIC = ("+", "-", "*", "/")

_NUMBER, _NUMBERS, _TRUTH, _TRUTHS = Kind.NUMBER, Kind.NUMBERS, Kind.TRUTH, Kind.TRUTHS
_THREE = (_NUMBER, _NUMBER, _NUMBER)


@dataclass(frozen=True)
class Operator:
    """An operator: the kinds it takes, the kind it gives, and what it means."""

    takes: tuple[Kind, ...]  # kinds of the arguments; with `many`, the kind of each of one or more
    gives: Kind  # kind of the result; a number operator keeps a series a series where `elementwise`
    meaning: str  # one line for `toolkit explain --language`
    many: bool = False  # any number of arguments, at least one
    elementwise: bool = False  # also accepts a series in its first argument and then gives a series


OPERATORS: dict[str, Operator] = {
    "all": Operator((_TRUTH,), _TRUTH, "every argument holds", many=True),
    "any": Operator((_TRUTH,), _TRUTH, "at least one argument holds", many=True),
    "not": Operator((_TRUTH,), _TRUTH, "the argument does not hold"),
    "passes": Operator((Kind.RULE,), _TRUTH, "the verdict of another rule is pass or met"),
    "each": Operator((_TRUTHS,), _TRUTH, "it holds for every member of the series"),
    "majority": Operator((_TRUTHS,), _TRUTH, "it holds for more than half of the series"),
    "count": Operator((_TRUTHS,), _NUMBER, "for how many members of the series it holds"),
    "within": Operator(_THREE, _TRUTH, "within(x, centre, margin): |x - centre| <= margin", elementwise=True),
    "between": Operator(_THREE, _TRUTH, "between(x, low, high): low <= x <= high", elementwise=True),
    "decreasing": Operator((_NUMBERS,), _TRUTH, "every member of the series is below the one before it"),
    "mean": Operator((_NUMBERS,), _NUMBER, "arithmetic mean of the series"),
    "min": Operator((_NUMBERS,), _NUMBER, "smallest member of the series"),
    "max": Operator((_NUMBERS,), _NUMBER, "largest member of the series"),
    "first": Operator((_NUMBERS,), _NUMBER, "first member of the series"),
    "last": Operator((_NUMBERS,), _NUMBER, "last member of the series"),
    "rest": Operator((_NUMBERS,), _NUMBERS, "the series without its first member"),
    "variance": Operator(
        (_NUMBERS,), _NUMBER, "sample variance of the series, over one less than its members"
    ),
    "list": Operator((_NUMBER,), _NUMBERS, "the arguments as a series, in order", many=True),
    "slope": Operator(
        (_NUMBERS, _NUMBERS), _NUMBER, "slope(y, x): least-squares line of y on x, with an intercept"
    ),
    "rank_correlation": Operator(
        (_NUMBERS, _NUMBERS), _NUMBER, "Kendall's tau-a of two series: a tied pair counts for neither order"
    ),
    "abs": Operator((_NUMBER,), _NUMBER, "absolute value", elementwise=True),
    "lower": Operator((Kind.INTERVAL,), _NUMBER, "lower end of a registered interval"),
    "upper": Operator((Kind.INTERVAL,), _NUMBER, "upper end of a registered interval"),
    "equivalent": Operator(
        (Kind.INTERVAL, _NUMBER),
        _TRUTH,
        "equivalent(interval, margin): -margin <= lower end and upper end <= margin; with a 90% interval "
        "these are two one-sided tests (TOST) at 5% each",
    ),
    "non_inferior": Operator(
        (Kind.INTERVAL, _NUMBER),
        _TRUTH,
        "non_inferior(interval, margin): -margin <= lower end; with a 90% interval a one-sided test at 5%",
    ),
    "p": Operator((Kind.TEST,), _NUMBER, "p-value of a registered test, exact"),
    "adjusted": Operator((Kind.TEST,), _NUMBER, "p-value of a registered test, adjusted within its family"),
}

# What a rules file declares for its tests to name.
DECLARED = {
    "endpoints.NAME": "what rows measure: a series by seed, run or checkpoint, or one number",
    "statistics.NAME": "one number by a `formula` over endpoints and other statistics, exact",
    "intervals.NAME": "of an endpoint's mean, by one of the methods listed here; of a statistic: "
    "`seed bootstrap`, whose draws are the same for all that it reads",
    "tests.NAME": "exact tests that an endpoint's differences lie about zero, `over` seeds or tasks: "
    "`sign flip`, `wilcoxon` (signed ranks; `zeros` dropped or ranked), `mcnemar` (binary tasks of one seed "
    "and schedule); `alternative` two-sided, greater or less",
    "families.NAME": "`tests` adjusted for each other, by `holm` or `benjamini-hochberg`; where one has no "
    "p-value, none of them has an adjusted one",
    "rules.NAME": "hypotheses, predictions and gates; `passes` asks for another's verdict",
}

_SERIES = {Kind.NUMBER: Kind.NUMBERS, Kind.TRUTH: Kind.TRUTHS}


def check_test(expression: Expression, names: Mapping[str, Kind], where: str) -> None:
    """Check that a test gives true or false, from declared names."""
    kind = kind_of(expression, names, where)
    if not any(names_in(expression)):
        raise RuleError("a test reads nothing: it holds, or does not, whatever the study finds", where=where)
    if kind is not Kind.TRUTH:
        raise RuleError("a test does not give true or false", found=kind.value, where=where)


def kind_of(expression: Expression, names: Mapping[str, Kind], where: str) -> Kind:
    """Return what an expression gives."""
    match expression:
        case Number():
            return Kind.NUMBER
        case Name(name):
            if name not in names:
                raise RuleError(
                    f"{name!r} is not declared",
                    expected="an endpoint, a statistic, an interval, a test or a rule of the registration",
                    found=name,
                    where=where,
                )
            return names[name]
        case Binary(operator, left, right):
            return _binary(operator, kind_of(left, names, where), kind_of(right, names, where), where)
        case Call(operator, arguments):
            return _call(operator, [kind_of(argument, names, where) for argument in arguments], where)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and every part of it, in order of appearance."""
    yield expression
    parts = expression.arguments if isinstance(expression, Call) else ()
    for part in (expression.left, expression.right) if isinstance(expression, Binary) else parts:
        yield from walk(part)


def names_in(expression: Expression) -> Iterator[str]:
    """Yield every name that an expression mentions, in order of appearance."""
    return (part.name for part in walk(expression) if isinstance(part, Name))


def _binary(operator: str, left: Kind, right: Kind, where: str) -> Kind:
    for kind in (left, right):
        if kind not in (Kind.NUMBER, Kind.NUMBERS):
            raise RuleError(f"{operator!r} takes numbers", found=kind.value, where=where)
    member = Kind.NUMBER if operator in ARITHMETIC else Kind.TRUTH
    return _SERIES[member] if Kind.NUMBERS in (left, right) else member


def _call(name: str, kinds: list[Kind], where: str) -> Kind:
    operator = OPERATORS[name]
    takes = operator.takes * len(kinds) if operator.many else operator.takes
    if len(kinds) != len(takes):
        raise RuleError(
            f"{name!r} takes {len(takes)} arguments", found=f"{len(kinds)} arguments", where=where
        )
    series = operator.elementwise and kinds[0] is Kind.NUMBERS
    for position, (kind, wanted) in enumerate(zip(kinds, takes, strict=True)):
        if kind is not wanted and not (series and position == 0):
            raise RuleError(f"{name!r} takes {wanted.value}", found=kind.value, where=where)
    return _SERIES[operator.gives] if series else operator.gives


# Deep nesting is refused rather than left to the interpreter's stack.
MAX_LENGTH = 2000
MAX_TOKENS = 200
MAX_DEPTH = 40

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<symbol>>=|<=|[><=+\-*/(),]))", re.ASCII
)


def parse(text: str, where: str) -> Expression:
    """Parse a test."""
    if len(text) > MAX_LENGTH:
        raise RuleError("a test is too long", expected=f"at most {MAX_LENGTH} characters", where=where)
    tokens = _tokens(text, where)
    if len(tokens) > MAX_TOKENS:
        raise RuleError("a test is too long", expected=f"at most {MAX_TOKENS} symbols", where=where)
    parser = _Parser(tokens, text, where)
    expression = parser.test(0)
    parser.end()
    return expression


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(text: str, where: str) -> list[_Token]:
    tokens = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise RuleError(
                "a test has a character that the language does not know",
                found=f"{text[position:].lstrip()[:20]!r} at position {position}",
                where=where,
            )
        tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        position = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token], text: str, where: str) -> None:
        self._tokens = tokens
        self._next = 0
        self._text = text
        self._where = where

    def test(self, depth: int) -> Expression:
        left = self._sum(depth)
        operator = self._symbol(COMPARISONS)
        if operator is None:
            return left
        comparison = Binary(operator, left, self._sum(depth))
        if self._symbol(COMPARISONS):
            raise self._unexpected("no second comparison")
        return comparison

    def end(self) -> None:
        if self._next < len(self._tokens):
            raise self._unexpected("the end of the test")

    def _sum(self, depth: int) -> Expression:
        left = self._product(depth)
        while operator := self._symbol(ARITHMETIC[:2]):
            left = Binary(operator, left, self._product(depth))
        return left

    def _product(self, depth: int) -> Expression:
        left = self._atom(depth)
        while operator := self._symbol(ARITHMETIC[2:]):
            left = Binary(operator, left, self._atom(depth))
        return left

    def _atom(self, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            raise RuleError("a test is nested too deeply", expected=f"depth {MAX_DEPTH}", where=self._where)
        if self._symbol(("-",)):
            return Binary("-", Number("0", Fraction(0)), self._atom(depth + 1))
        if self._symbol(("(",)):
            inside = self.test(depth + 1)
            self._expect(")")
            return inside
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        if token is None or token.kind == "symbol":
            raise self._unexpected("a number, a name or an operator")
        self._next += 1
        if token.kind == "number":
            return Number(token.text, Fraction(token.text))
        if self._symbol(("(",)):
            return self._call(token, depth)
        return Name(token.text)

    def _call(self, token: _Token, depth: int) -> Expression:
        if token.text not in OPERATORS:
            raise RuleError(
                f"the rule language has no operator {token.text!r}",
                expected="one of " + ", ".join(OPERATORS),
                found=f"{self._text!r}",
                where=self._where,
            )
        arguments = [self.test(depth + 1)]
        while self._symbol((",",)):
            arguments.append(self.test(depth + 1))
        self._expect(")")
        return Call(token.text, tuple(arguments))

    def _symbol(self, symbols: tuple[str, ...]) -> str | None:
        if self._next < len(self._tokens):
            token = self._tokens[self._next]
            if token.kind == "symbol" and token.text in symbols:
                self._next += 1
                return token.text
        return None

    def _expect(self, symbol: str) -> None:
        if not self._symbol((symbol,)):
            raise self._unexpected(f"{symbol!r}")

    def _unexpected(self, expected: str) -> RuleError:
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        shown = "the end of the test" if token is None else f"{token.text!r} at position {token.at}"
        return RuleError(
            "a test cannot be read", expected=expected, found=f"{shown} in {self._text!r}", where=self._where
        )
