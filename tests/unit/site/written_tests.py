"""Tests of the rule language made at random, each with values for its names, and what they give in Python."""

from fractions import Fraction
from random import Random
from typing import Any

from toolkit.decisions.evaluation import evaluate
from toolkit.decisions.grammar import parse
from toolkit.decisions.values import Missing, Series, Value
from toolkit.errors import RuleError

SEED = 20261120
DEEPEST = 3
MEMBERS = ("0", "1", "2")
SUMMARIES = ("mean", "min", "max", "first", "last", "variance")


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
    names: dict[str, Any] = {f"value s{i}": _scalar(rng) for i in range(3)}
    names |= {f"value v{i}": _series(rng) for i in range(3)}
    names |= {f"{end} i": _scalar(rng) for end in ("lower", "upper")}
    names |= {f"{role} t": _scalar(rng) for role in ("p", "adjusted")}
    names |= {f"passes r{i}": _truth(rng) for i in range(2)}
    return {"test": _truth_test(rng, DEEPEST), "names": names}


def _fraction(rng: Random) -> str:
    return str(Fraction(rng.randint(-6, 6), rng.randint(1, 5)))


def _missing(rng: Random) -> dict[str, Any]:
    return {"missing": [rng.choice(("one", "another"))], "not_run": rng.random() < 0.5}


def _scalar(rng: Random) -> Any:
    return _missing(rng) if rng.random() < 0.15 else _fraction(rng)


def _truth(rng: Random) -> Any:
    return rng.choice((True, False, _missing(rng)))


def _series(rng: Random) -> Any:
    return {"unit": "seed", "members": [[member, _scalar(rng)] for member in MEMBERS]}


def _number_test(rng: Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(("s0", "s1", "s2", "0.5", "2", "lower(i)", "upper(i)", "p(t)", "adjusted(t)"))
    one, two = (_number_test(rng, depth - 1) for _ in range(2))
    return rng.choice(
        (
            f"({one} {rng.choice('+-*/')} {two})",
            f"-{one}",
            f"abs({one})",
            f"{rng.choice(SUMMARIES)}({_numbers_test(rng, depth - 1)})",
            f"slope({_numbers_test(rng, depth - 1)}, {_numbers_test(rng, depth - 1)})",
            f"rank_correlation({_numbers_test(rng, depth - 1)}, {_numbers_test(rng, depth - 1)})",
            f"count({_truths_test(rng, depth - 1)})",
        )
    )


def _numbers_test(rng: Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(("v0", "v1", "v2"))
    series, one = _numbers_test(rng, depth - 1), _number_test(rng, depth - 1)
    return rng.choice(
        (
            f"({series} {rng.choice('+-*/')} {_numbers_test(rng, depth - 1)})",
            f"({series} {rng.choice('+-*/')} {one})",
            f"({one} {rng.choice('+-*/')} {series})",
            f"rest({series})",
            f"abs({series})",
            f"list({one}, {_number_test(rng, depth - 1)}, {_number_test(rng, depth - 1)})",
        )
    )


def _truths_test(rng: Random, depth: int) -> str:
    series, one = _numbers_test(rng, depth), _number_test(rng, depth)
    compare = rng.choice((">=", "<=", ">", "<", "="))
    return rng.choice(
        (
            f"{series} {compare} {one}",
            f"{series} {compare} {_numbers_test(rng, depth)}",
            f"within({series}, {one}, 0.5)",
            f"between({series}, -1, {one})",
        )
    )


def _truth_test(rng: Random, depth: int) -> str:
    if depth == 0:
        margins = ("equivalent(i, 2)", "non_inferior(i, 1.5)")
        return rng.choice(("passes(r0)", "passes(r1)", "s0 > s1", "s2 <= 0", "lower(i) < s0", *margins))
    one, two = (_truth_test(rng, depth - 1) for _ in range(2))
    return rng.choice(
        (
            f"all({one}, {two})",
            f"any({one}, {two}, {one})",
            f"not({one})",
            f"each({_truths_test(rng, depth - 1)})",
            f"majority({_truths_test(rng, depth - 1)})",
            f"decreasing({_numbers_test(rng, depth - 1)})",
            f"within({_number_test(rng, depth - 1)}, {_number_test(rng, depth - 1)}, 1)",
            f"{_number_test(rng, depth - 1)} >= {_number_test(rng, depth - 1)}",
        )
    )


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
