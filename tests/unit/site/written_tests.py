"""Tests of the rule language made at random, each with values for its names, and what they give in Python."""

import re
from fractions import Fraction
from random import Random
from typing import Any

from toolkit.decisions.evaluation import evaluate
from toolkit.errors import RuleError
from toolkit.rules.expressions import parse
from toolkit.rules.values import Missing, Series, Value

SEED = 20261120
DEEPEST = 3
MEMBERS = ("0", "1", "2")
LEAVES = {
    "number": ("s0", "s1", "s2", "0.5", "2", "lower(i)", "upper(i)", "p(t)", "adjusted(t)"),
    "numbers": ("v0", "v1", "v2"),
    "truth": (
        *("passes(r0)", "passes(r1)", "s0 > s1", "s2 <= 0", "lower(i) < s0"),
        *("equivalent(i, 2)", "non_inferior(i, 1.5)"),
    ),
}
# What each kind of part can be, of parts that are one step less deep.
WHOLE = {
    "number": (
        *(f"(<number> {sign} <number>)" for sign in "+-*/"),
        *(f"{name}(<numbers>)" for name in ("mean", "min", "max", "first", "last", "variance")),
        *(f"{name}(<numbers>, <numbers>)" for name in ("slope", "rank_correlation")),
        *("-<number>", "abs(<number>)", "count(<truths>)"),
    ),
    "numbers": (
        *(f"(<numbers> {sign} <numbers>)" for sign in "+-*/"),
        *(f"(<numbers> {sign} <number>)" for sign in "+-*/"),
        *(f"(<number> {sign} <numbers>)" for sign in "+-*/"),
        *("rest(<numbers>)", "abs(<numbers>)", "list(<number>, <number>, <number>)"),
    ),
    "truth": (
        *("all(<truth>, <truth>)", "any(<truth>, <truth>, <truth>)", "not(<truth>)", "each(<truths>)"),
        *("majority(<truths>)", "decreasing(<numbers>)", "within(<number>, <number>, 1)"),
        "<number> >= <number>",
    ),
}
TRUTHS = (
    *(f"<numbers> {sign} <number>" for sign in (">=", "<=", ">", "<", "=")),
    *(f"<numbers> {sign} <numbers>" for sign in (">=", "<=", ">", "<", "=")),
    *("within(<numbers>, <number>, 0.5)", "between(<numbers>, -1, <number>)"),
)


def some_tests(number: int) -> list[dict[str, Any]]:
    """Return tests with the values of their names, as `role name`; the same ones each time."""
    rng = Random(SEED)  # noqa: S311 - examples, not secrets
    return [_made(rng) for _ in range(number)]


def answers_in_python(tests: list[dict[str, Any]]) -> list[Any]:
    """Return what each test gives, as the site writes values."""
    return [_answer(test["test"], test["names"]) for test in tests]


def _answer(text: str, names: dict[str, Any]) -> Any:
    try:
        return _written(evaluate(parse(text, "test"), lambda role, name: _read(names[f"{role} {name}"])))
    except RuleError as error:
        return {"error": error.problem}


def _made(rng: Random) -> dict[str, Any]:
    def missing() -> dict[str, Any]:
        return {"missing": [rng.choice(("one", "another"))], "not_run": rng.random() < 0.5}

    def scalar() -> Any:
        return missing() if rng.random() < 0.15 else str(Fraction(rng.randint(-6, 6), rng.randint(1, 5)))

    scalars = ("value s0", "value s1", "value s2", "lower i", "upper i", "p t", "adjusted t")
    names = {name: scalar() for name in scalars}
    names |= {f"value v{i}": {"unit": "seed", "members": [[m, scalar()] for m in MEMBERS]} for i in range(3)}
    names |= {f"passes r{i}": rng.choice((True, False, missing())) for i in range(2)}
    return {"test": _part(rng, "truth", DEEPEST), "names": names}


def _part(rng: Random, kind: str, depth: int) -> str:
    """Return a part of a test at random, no deeper than said."""
    if kind == "truths":  # a comparison of series adds no depth
        chosen = rng.choice(TRUTHS)
    else:
        chosen, depth = rng.choice(WHOLE[kind] if depth else LEAVES[kind]), depth - 1
    return re.sub("<([a-z]+)>", lambda part: _part(rng, part[1], depth), chosen)


def _read(written: Any) -> Value:
    if isinstance(written, str):
        return Fraction(written)
    if isinstance(written, bool):
        return written
    if "missing" in written:
        return Missing(written["not_run"], tuple(written["missing"]))
    members: list[tuple[str, Any]] = [(key, _read(member)) for key, member in written["members"]]
    return Series(written["unit"], tuple(members))


def _written(value: Value) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, Missing):
        return {"missing": list(value.reasons), "not_run": value.not_run}
    return str(value)
