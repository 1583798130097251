"""A rule's estimate by a mixed-effects model: a second opinion, which changes no verdict."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from toolkit.decisions.engine import Engine
from toolkit.decisions.rulebook import RuleBook
from toolkit.decisions.values import Missing
from toolkit.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from toolkit.documents.decisions import MixedEffectsDocument

LABEL = "sensitivity analysis: it changes no verdict"
LEVEL = 0.95
NORMAL = 1.959964
"""Quantile of the normal distribution that belongs to `LEVEL`."""
ARMS = 2
EPISODES = "episodes"


@dataclass(frozen=True)
class MixedEffects:
    """What the model says of a difference of two arms.

    Args:
        endpoint: the endpoint.
        estimate: the first arm's effect, in the endpoint's unit.
        low, high: its 95% interval, by the normal distribution.
        task_sd: standard deviation of the tasks' levels.
        effect_sd: that of the effects on tasks; None with one seed, where they cannot be told from chance.
        residual_sd: that of what is left.
        converged: whether the fit did.
        made: the model, in words.
    """

    endpoint: str
    estimate: float
    low: float
    high: float
    task_sd: float
    effect_sd: float | None
    residual_sd: float
    converged: bool
    made: str

    @property
    def in_words(self) -> str:
        """The figures, on one line."""
        doubt = "" if self.converged else "; THE FIT DID NOT CONVERGE"
        return f"{self.estimate:+.4f}, 95% [{self.low:+.4f}, {self.high:+.4f}]{doubt}: {self.made}"

    def as_dict(self) -> MixedEffectsDocument:
        """Return it as it is printed with `--json`."""
        return {
            "label": LABEL,
            "text": self.in_words,
            "endpoint": self.endpoint,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "task_sd": self.task_sd,
            "effect_sd": self.effect_sd,
            "residual_sd": self.residual_sd,
            "converged": self.converged,
            "made": self.made,
        }


def mixed_effects(book: RuleBook, engine: Engine, rule_id: str) -> MixedEffects:
    """Fit a linear mixed model to what each run had on each task.

    Tasks are random, seeds are fixed. With several seeds the effect may differ from task to task.

    Args:
        book: the rules.
        engine: what measures the study.
        rule_id: the rule whose estimate is meant.

    Raises:
        UsageError: the estimate is no difference of two arms, by seed, in means of episodes.
        IncompleteError: the study lacks rows, or statsmodels is not installed.

    Source:
        Restricted maximum likelihood by statsmodels' MixedLM. In a balanced study the estimate is the mean
        difference, and its error that of the tasks' differences.
    """
    endpoint = book.endpoints.get(book.rule(rule_id).estimate)
    if not engine.registers.has(EPISODES):
        raise IncompleteError(f"study {engine.registers.name!r} has no episode rows to be modelled")
    levels = engine.levels(endpoint.id) if endpoint and len(endpoint.arms) == ARMS else None
    if endpoint is None or levels is None:
        raise UsageError(
            f"the estimate of {rule_id} is no difference of two arms, by seed, in means of episodes"
        )
    if isinstance(levels, Missing):
        raise IncompleteError(
            f"the rows of {endpoint.id} cannot be modelled", found="; ".join(levels.reasons)
        )
    if find_spec("statsmodels") is None:
        raise IncompleteError(
            "the mixed-effects model needs a package that is not installed",
            expected="statsmodels",
            remedy="pip install 'paired-rollouts-toolkit[sensitivity]'",
        )
    import numpy as np
    from statsmodels.regression.mixed_linear_model import MixedLM

    is_first = np.array([arm == endpoint.arms[0] for arm, _, _, _ in levels], float)
    seeds = np.array([seed for _, seed, _, _ in levels])
    several = [(seeds == seed).astype(float) for seed in endpoint.seeds[1:]]
    ones = np.ones(len(levels))
    random = np.column_stack([ones, is_first] if several else [ones])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged is asked, and said
        fitted = MixedLM(
            np.array([value for _, _, _, value in levels]),
            np.column_stack([ones, is_first, *several]),
            groups=np.array([task for _, _, task, _ in levels]),
            exog_re=random,
        ).fit(reml=True)
    estimate, error = float(fitted.params[1]), float(fitted.bse[1])
    spread = [float(fitted.cov_re[i][i]) ** 0.5 for i in range(random.shape[1])]
    return MixedEffects(
        endpoint.id,
        estimate,
        estimate - NORMAL * error,
        estimate + NORMAL * error,
        spread[0],
        spread[1] if several else None,
        float(fitted.scale) ** 0.5,
        bool(fitted.converged),
        f"mixed-effects model, {len(set(fitted.model.groups))} tasks random in level"
        + (f" and effect, {len(endpoint.seeds)} seeds fixed" if several else ", one seed"),
    )
