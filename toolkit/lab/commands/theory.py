"""`toolkit theory`: the paper's propositions as numbers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from toolkit.cli.options import FILE, flag, group, json_option, option
from toolkit.cli.output import print_json, say_line
from toolkit.errors import DamagedError, UsageError
from toolkit.structs import Document, about, as_builtins

if TYPE_CHECKING:
    from collections.abc import Mapping

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
LARGEST_BATCH = 1_000_000
FLIP_RATE = option(
    "--flip-rate", type=Rational(), required=True, help="Probability that a success is flipped."
)
GROUP_SIZE = option(
    "--group-size", type=click.IntRange(2, LARGEST_GROUP), default=8, help="Rollouts in a group."
)
BATCH = option("--batch", type=click.IntRange(1, LARGEST_BATCH), default=1, help="Groups in a step.")


class InBothDesigns(Document, frozen=True):
    """A number in both designs."""

    independent: Annotated[float, about("Of the independent design.")]
    paired: Annotated[float, about("Of the paired design.")]


class SpuriousRate(InBothDesigns, frozen=True):
    """How often flips alone make an all-correct group's rewards vary: a share of such groups."""


class GroupGradient(Document, frozen=True):
    """The gradient of a group, in units of the score."""

    trace: Annotated[InBothDesigns, about("Of its covariance, score².")]
    mean_norm: Annotated[InBothDesigns, about("Of its mean, score.")]


class AlignedBandit(Document, frozen=True):
    """The aligned bandit."""

    contrast_variance: Annotated[InBothDesigns, about("Of the difference of two rewards, reward².")]
    mean_centred: Annotated[GroupGradient, about("With advantages that are centred.")]
    standardized: Annotated[GroupGradient, about("With advantages that are divided by their spread.")]
    clean_norm_squared: Annotated[float, about("Of the gradient without flips, score².")]
    score_spread: Annotated[float, about("score².")]


class DriftRatio(Document, frozen=True):
    """How far a step is expected to climb."""

    drift: Annotated[InBothDesigns, about("In units of the learning rate.")]
    ratio: Annotated[float | None, about("Paired over independent; null where that is zero.")]


class BanditDrift(Document, frozen=True):
    """The aligned bandit's drift."""

    mean_centred: DriftRatio
    standardized: DriftRatio


class LuckyGroup(Document, frozen=True):
    """What a paired group is worth where luck explains a share of the rewards' variance."""

    effective_group_size: Annotated[float, about("Independent rollouts that its mean reward is worth.")]
    contrast_replicates: Annotated[
        float | None,
        about("Independent differences that one of two rewards is worth; null where luck is all."),
    ]


class EqualVariance(Document, frozen=True):
    """The independent batch whose gradient varies as much."""

    independent_groups: Annotated[float, about("Groups a step.")]


class ExactCondition(Document, frozen=True):
    """Both sides of the exact condition, score²."""

    left: Annotated[float, about("L: size of the clean group gradient.")]
    right: Annotated[float, about("R: spread of the true successes' scores, over G².")]
    ratio: Annotated[float | None, about("Left over right; null where that is zero.")]
    pairing_lowers_trace: Annotated[bool, about("Whether left is below right.")]


@group()
def theory() -> None:
    """The paper's propositions as numbers, and the drift: what pairing does to rewards and gradients.

    \b
    Commands, each with its own --help:
      spurious        how often flips alone make a group's rewards vary
      bandit          what pairing does in the aligned bandit
      drift           the aligned bandit's drift
      luck            what a paired group is worth at a luck share
      equal-variance  the independent batch of equal variance
      condition       both sides of the exact condition
    """


@theory.command(hidden=True)
def spurious(
    *,
    flip_rate: Fraction = FLIP_RATE,
    group_size: int = option(type=click.IntRange(1, LARGEST_GROUP), default=8, help="Rollouts in a group."),
    as_json: bool = json_option,
) -> None:
    """Compute how often flips alone make a group's rewards vary.

    The group is all-correct: without flips its rewards were the same.

    \b
    Examples:
      toolkit theory spurious --flip-rate 0.1
      toolkit theory spurious --flip-rate 0.05 --group-size 16 --json
    """
    from toolkit.estimators import spurious_rate

    rate = _checked(spurious_rate, flip_rate, group_size)
    _show(SpuriousRate(float(rate), 0.0), as_json=as_json)


@theory.command(hidden=True)
def bandit(
    *,
    logit: float = option(type=float, default=0.0, help="Policy parameter θ; success is σ(θ)."),
    flip_rate: Fraction = FLIP_RATE,
    group_size: int = GROUP_SIZE,
    as_json: bool = json_option,
) -> None:
    """Compute what pairing does in the aligned bandit.

    It improves reward contrasts and worsens the gradient's variance.

    \b
    Examples:
      toolkit theory bandit --logit 0.0 --group-size 8 --flip-rate 0.1
      toolkit theory bandit --logit -1.5 --flip-rate 0.05 --json
    """
    from toolkit.estimators import bandit as enumerate_bandit
    from toolkit.estimators import success_probability

    result = _checked(enumerate_bandit, _checked(success_probability, logit), group_size, flip_rate)
    document = AlignedBandit(
        _designs(result.contrast_variance),
        GroupGradient(_designs(result.mean_centred_trace), _designs(result.mean_centred_norm)),
        GroupGradient(_designs(result.standardized_trace), _designs(result.standardized_norm)),
        float(result.clean_norm_squared),
        float(result.score_spread),
    )
    _show(document, as_json=as_json)


@theory.command(hidden=True)
def drift(
    *,
    logit: float = option(type=float, default=0.0, help="Policy parameter θ; success is σ(θ)."),
    flip_rate: Fraction = FLIP_RATE,
    group_size: int = GROUP_SIZE,
    batch: int = BATCH,
    optimizer: str = option(
        type=click.Choice(["adam", "gradient", "sign"]),
        default="adam",
        help="What takes the step; `gradient` is plain ascent, `sign` a normal approximation.",
    ),
    as_json: bool = json_option,
) -> None:
    """Compute the aligned bandit's drift.

    That is how far a step is expected to climb, in units of the learning rate.

    \b
    Examples:
      toolkit theory drift --logit 0.0 --group-size 8 --flip-rate 0.1 --batch 2
      toolkit theory drift --flip-rate 0.1 --batch 24 --optimizer gradient --json
    """
    from toolkit.estimators import bandit_drift, success_probability

    success = _checked(success_probability, logit)
    result = _checked(bandit_drift, success, group_size, flip_rate, batch, optimizer)
    _show(BanditDrift(_drift(result.mean_centred), _drift(result.standardized)), as_json=as_json)


@theory.command(hidden=True)
def luck(
    *,
    share: Fraction = option(type=Rational(), required=True, help="Luck share λ, from 0 to 1."),
    group_size: int = GROUP_SIZE,
    as_json: bool = json_option,
) -> None:
    """Compute what a paired group is worth at a luck share.

    The luck share is the part of the rewards' variance that luck explains.

    For the mean reward it is worth fewer rollouts than it has, G/(1 + (G - 1)λ); for the difference of two
    rewards it is worth 1/(1 - λ) independent differences.

    \b
    Examples:
      toolkit theory luck --share 0.4 --group-size 8
      toolkit theory luck --share 0.25 --json
    """
    from toolkit.estimators import contrast_replicates, effective_group_size

    size = _checked(effective_group_size, group_size, share)
    replicates = _checked(contrast_replicates, share)
    _show(LuckyGroup(float(size), None if replicates is None else float(replicates)), as_json=as_json)


@theory.command("equal-variance", hidden=True)
def equal_variance(
    *,
    ratio: Fraction = option(type=Rational(), required=True, help="Trace, paired over independent."),
    batch: int = BATCH,
    as_json: bool = json_option,
) -> None:
    """Compute the independent batch of equal variance.

    Its gradient varies as much as that of BATCH paired groups: BATCH over RATIO.

    \b
    Examples:
      toolkit theory equal-variance --ratio 0.63 --batch 24
      toolkit theory equal-variance --ratio 2.2 --batch 8 --json
    """
    from toolkit.estimators import equal_variance_batch

    groups = _checked(equal_variance_batch, batch, ratio)
    _show(EqualVariance(float(groups)), as_json=as_json)


@theory.command(hidden=True)
def condition(
    *,
    successes: int | None = option(type=int, help="True successes in a group of a known geometry."),
    group_size: int = GROUP_SIZE,
    silent: bool = flag(help="The successes' scores are zero; otherwise all are orthogonal."),
    scores: Path | None = option(type=FILE, help='JSON file {"outcomes": [...], "scores": [[...]]}.'),
    as_json: bool = json_option,
) -> None:
    """Compute both sides of the exact condition.

    They are those of two geometries in closed form, or of a group of your own.

    With orthogonal scores the ratio left over right is (G - k)/(G - 1); with silent successes it is k.

    \b
    Examples:
      toolkit theory condition --successes 5
      toolkit theory condition --successes 5 --silent
      toolkit theory condition --successes 1 --group-size 8 --json
    """
    from toolkit.estimators import exact_condition, orthogonal_condition, silent_condition

    if (successes is None) == (scores is None):
        raise UsageError("give --successes, or --scores with a file")
    if scores is None:
        sides = _checked(silent_condition if silent else orthogonal_condition, successes, group_size)
    elif silent:
        raise UsageError("--silent describes a group of --successes; the file has scores of its own")
    else:
        outcomes, gram = _read_scores(scores)
        sides = _checked(exact_condition, outcomes, gram)
    ratio = None if sides.ratio is None else float(sides.ratio)
    document = ExactCondition(float(sides.left), float(sides.right), ratio, sides.pairing_lowers_trace)
    _show(document, as_json=as_json)


def _read_scores(path: Path) -> tuple[Any, Any]:
    import numpy as np

    from toolkit.files import read_text

    try:
        document = json.loads(read_text(path))
        matrix = np.asarray(document["scores"], dtype=float)
        return document["outcomes"], matrix @ matrix.T
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = "the file does not hold a group's outcomes and scores"
        expected = '{"outcomes": [0 or 1, …], "scores": [[number, …], …]}, a row a rollout'
        found = f"{type(error).__name__}: {error}"[:200]
        raise DamagedError(problem, expected=expected, found=found, where=path) from None


def _checked(estimator: Any, *arguments: Any) -> Any:
    try:
        return estimator(*arguments)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _designs(pair: ByDesign) -> InBothDesigns:
    return InBothDesigns(float(pair.independent), float(pair.paired))


def _drift(pair: ByDesign) -> DriftRatio:
    ratio = pair.paired / pair.independent if pair.independent else None
    return DriftRatio(_designs(pair), None if ratio is None else float(ratio))


def _show(document: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    figures = _flat(as_builtins(document))
    wide = max(34, *(len(name) for name, _ in figures))
    for name, value in figures:
        say_line(f"{name:{wide}} {_cell(value)}")


def _cell(value: Any) -> str:
    if value is None:
        return "none: there is nothing to divide by"
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower()


def _flat(document: Mapping[str, object], above: str = "") -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for key, value in document.items():
        name = f"{above}{key.replace('_', ' ')}"
        lines += _flat(value, f"{name}, ") if isinstance(value, dict) else [(name, value)]
    return lines
