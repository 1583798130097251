"""`toolkit theory`: the paper's propositions as numbers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit.cli.output import FILE, json_option, print_json
from toolkit.errors import DamagedError, UsageError

if TYPE_CHECKING:
    from toolkit.estimators.theory import ByDesign


class Rational(click.ParamType[Fraction]):
    """A number as written, kept exactly."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """Return the number as a fraction."""
        if isinstance(value, Fraction):
            return value
        if len(str(value)) > LONGEST:
            self.fail(f"at most {LONGEST} characters", param, ctx)
        try:
            return Fraction(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is no number", param, ctx)


LONGEST = 30
LARGEST_GROUP = 128
FLIP_RATE = click.option(
    "--flip-rate", type=Rational(), required=True, help="Probability that a success is flipped."
)
GROUP_SIZE = click.option(
    "--group-size", type=click.IntRange(2, LARGEST_GROUP), default=8, help="Rollouts in a group."
)


@click.group()
def theory() -> None:
    """The paper's propositions as numbers: spurious variance, the bandit, the exact condition."""


@theory.command()
@FLIP_RATE
@click.option("--group-size", type=click.IntRange(1, LARGEST_GROUP), default=8, help="Rollouts in a group.")
@json_option
def spurious(*, flip_rate: Fraction, group_size: int, as_json: bool) -> None:
    """How often flips alone make an all-correct group's rewards vary.

    \b
    Examples:
      toolkit theory spurious --flip-rate 0.1
      toolkit theory spurious --flip-rate 0.05 --group-size 16 --json
    """
    from toolkit.estimators import spurious_rate

    rate = _checked(spurious_rate, flip_rate, group_size)
    _show({"independent": float(rate), "paired": 0.0}, as_json=as_json)


@theory.command()
@click.option("--logit", type=float, default=0.0, help="Policy parameter θ; success is σ(θ).")
@FLIP_RATE
@GROUP_SIZE
@json_option
def bandit(*, logit: float, flip_rate: Fraction, group_size: int, as_json: bool) -> None:
    """The aligned bandit: pairing improves reward contrasts and worsens the gradient's variance.

    \b
    Examples:
      toolkit theory bandit --logit 0.0 --group-size 8 --flip-rate 0.1
      toolkit theory bandit --logit -1.5 --flip-rate 0.05 --json
    """
    from toolkit.estimators import bandit as enumerate_bandit
    from toolkit.estimators import success_probability

    result = _checked(enumerate_bandit, _checked(success_probability, logit), group_size, flip_rate)
    document = {
        "contrast_variance": _designs(result.contrast_variance),
        "mean_centred": {
            "trace": _designs(result.mean_centred_trace),
            "mean_norm": _designs(result.mean_centred_norm),
        },
        "standardized": {
            "trace": _designs(result.standardized_trace),
            "mean_norm": _designs(result.standardized_norm),
        },
        "clean_norm_squared": float(result.clean_norm_squared),
        "score_spread": float(result.score_spread),
    }
    _show(document, as_json=as_json)


@theory.command()
@click.option("--successes", type=int, help="True successes among rollouts with orthogonal scores.")
@GROUP_SIZE
@click.option("--scores", type=FILE, help='JSON file {"outcomes": [...], "scores": [[...]]}.')
@json_option
def condition(*, successes: int | None, group_size: int, scores: Path | None, as_json: bool) -> None:
    """Both sides of the exact condition: orthogonal scores in closed form, or a group of your own.

    \b
    Examples:
      toolkit theory condition --successes 5
      toolkit theory condition --successes 1 --group-size 8 --json
    """
    from toolkit.estimators import exact_condition, orthogonal_condition

    if (successes is None) == (scores is None):
        raise UsageError("give --successes, or --scores with a file")
    if scores is None:
        sides = _checked(orthogonal_condition, successes, group_size)
    else:
        outcomes, gram = _read_scores(scores)
        sides = _checked(exact_condition, outcomes, gram)
    document = {
        "left": float(sides.left),
        "right": float(sides.right),
        "pairing_lowers_trace": sides.pairing_lowers_trace,
    }
    _show(document, as_json=as_json)


def _read_scores(path: Path) -> tuple[Any, Any]:
    import numpy as np

    from toolkit.files import read_text

    try:
        document = json.loads(read_text(path))
        matrix = np.asarray(document["scores"], dtype=float)
        return document["outcomes"], matrix @ matrix.T
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError(
            "the file does not hold a group's outcomes and scores",
            expected='{"outcomes": [0 or 1, …], "scores": [[number, …], …]}, a row a rollout',
            found=f"{type(error).__name__}: {error}"[:200],
            where=path,
        ) from None


def _checked(estimator: Any, *arguments: Any) -> Any:
    """Call an estimator; what it refuses was wrong usage."""
    try:
        return estimator(*arguments)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _designs(pair: ByDesign) -> dict[str, float]:
    return {"independent": float(pair.independent), "paired": float(pair.paired)}


def _show(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    for name, value in _flat(document):
        click.echo(
            f"{name:34} {value:.6g}" if isinstance(value, float) else f"{name:34} {str(value).lower()}"
        )


def _flat(document: dict[str, Any], above: str = "") -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for key, value in document.items():
        name = f"{above}{key.replace('_', ' ')}"
        lines += _flat(value, f"{name}, ") if isinstance(value, dict) else [(name, value)]
    return lines
