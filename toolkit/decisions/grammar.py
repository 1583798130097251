"""From the text of a test to its expression: a tokenizer and a recursive-descent parser.

test     = sum [ comparison sum ]
sum      = product { ("+" | "-") product }
product  = atom { ("*" | "/") atom }
atom     = number | name | operator "(" test { "," test } ")" | "(" test ")" | "-" atom
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from toolkit.decisions import expressions
from toolkit.errors import RuleError

# Deep nesting is refused rather than left to the interpreter's stack.
MAX_LENGTH = 2000
MAX_TOKENS = 200
MAX_DEPTH = 40

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<symbol>>=|<=|[><=+\-*/(),]))", re.ASCII
)


def parse(text: str, where: str) -> expressions.Expression:
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

    def test(self, depth: int) -> expressions.Expression:
        left = self._sum(depth)
        operator = self._symbol(expressions.COMPARISONS)
        if operator is None:
            return left
        comparison = expressions.Binary(operator, left, self._sum(depth))
        if self._symbol(expressions.COMPARISONS):
            raise self._unexpected("no second comparison")
        return comparison

    def end(self) -> None:
        if self._next < len(self._tokens):
            raise self._unexpected("the end of the test")

    def _sum(self, depth: int) -> expressions.Expression:
        left = self._product(depth)
        while operator := self._symbol(expressions.ARITHMETIC[:2]):
            left = expressions.Binary(operator, left, self._product(depth))
        return left

    def _product(self, depth: int) -> expressions.Expression:
        left = self._atom(depth)
        while operator := self._symbol(expressions.ARITHMETIC[2:]):
            left = expressions.Binary(operator, left, self._atom(depth))
        return left

    def _atom(self, depth: int) -> expressions.Expression:
        if depth > MAX_DEPTH:
            raise RuleError("a test is nested too deeply", expected=f"depth {MAX_DEPTH}", where=self._where)
        if self._symbol(("-",)):
            return expressions.Binary("-", expressions.Number("0", Fraction(0)), self._atom(depth + 1))
        if self._symbol(("(",)):
            inside = self.test(depth + 1)
            self._expect(")")
            return inside
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        if token is None or token.kind == "symbol":
            raise self._unexpected("a number, a name or an operator")
        self._next += 1
        if token.kind == "number":
            return expressions.Number(token.text, Fraction(token.text))
        if self._symbol(("(",)):
            return self._call(token, depth)
        return expressions.Name(token.text)

    def _call(self, token: _Token, depth: int) -> expressions.Expression:
        if token.text not in expressions.OPERATORS:
            raise RuleError(
                f"the rule language has no operator {token.text!r}",
                expected="one of " + ", ".join(expressions.OPERATORS),
                found=f"{self._text!r}",
                where=self._where,
            )
        arguments = [self.test(depth + 1)]
        while self._symbol((",",)):
            arguments.append(self.test(depth + 1))
        self._expect(")")
        return expressions.Call(token.text, tuple(arguments))

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
