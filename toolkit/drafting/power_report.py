"""What a simulation says of a rule: how well the spread of seeds is known, and how many seeds it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import variance
from typing import TYPE_CHECKING

from toolkit.drafting.power import Components, Power
from toolkit.estimators import chi_square_quantile
from toolkit.rules.rules import Rule

if TYPE_CHECKING:
    from toolkit.documents.theory import PowerDocument

CLEARLY = 3  # Monte Carlo errors of a difference
LABEL = "simulated: it changes no verdict"


def spread_range(observed: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95% range of the standard deviation of the seeds' differences, for normal differences.

    None for a single seed, which has no spread.
    """
    degrees = len(observed) - 1
    if not degrees:
        return None
    squares = degrees * variance(observed)
    low, high = (chi_square_quantile(p, degrees) for p in (0.975, 0.025))
    return math.sqrt(squares / low), math.sqrt(squares / high)


def needed(results: list[Power], effect: float, target: float) -> int | None:
    """Return the fewest of the simulated numbers of seeds with which the rule reaches the target power."""
    enough = [p.design.seeds for p in results if p.design.effect == effect and p.pass_probability >= target]
    return min(enough, default=None)


def warnings(rule: Rule, results: list[Power]) -> list[str]:
    """Say where a rule's interval covers clearly more or less than its level says."""
    said = []
    for words, sign in (("wider than it says, and misses effects", 1), ("narrower than it says", -1)):
        there = [p for p in results if p.level_missed * sign > 0]
        if not there:
            continue
        cells = ", ".join(
            f"{p.level_missed + (p.level or 0):.1%} with {_seeds(p.design.seeds)} at {p.design.effect:+.3f}"
            for p in there
        )
        said.append(
            f"{rule.interval} is {words}: it covers the true effect in {cells}, and says "
            f"{there[0].level:.0%}; `toolkit explain --language` says what each method assumes"
        )
    return said


def _seeds(number: int) -> str:
    return f"{number} seeds" if number > 1 else "1 seed"


def harder(results: list[Power], effect: float) -> bool:
    """Return whether the rule passes clearly less often with the most seeds than with the fewest."""
    simulated = sorted((p for p in results if p.design.effect == effect), key=lambda p: p.design.seeds)
    few, many = simulated[0], simulated[-1]
    clearly = CLEARLY * math.hypot(few.monte_carlo_error, many.monte_carlo_error)
    return many.pass_probability < few.pass_probability - clearly


def power_document(
    rule: Rule, study: str, components: Components, results: list[Power], target: float
) -> PowerDocument:
    """Return simulated studies as JSON values."""
    effects = list(dict.fromkeys(p.design.effect for p in results))
    return {
        "rule": rule.id,
        "study": study,
        "label": LABEL,
        "fitted": {
            "observed": list(components.observed),
            "sampling_sd": components.sampling_variance**0.5,
            "observed_sd_range": spread_range(components.observed),
            "seed_sd": components.seed_sd,
            "variance_ratio": components.variance_ratio,
            "success": {name: list(values) for name, values in components.success.items()},
        },
        "assumed": {
            "model": components.outcome.in_words,
            "episode_sd": None if components.outcome.is_success else components.outcome.sd,
            "seed_sd": results[0].design.seed_sd,
            "task_sd_at_most": results[0].design.task_sd,
            "tasks": results[0].design.tasks,
            "variance_ratio": results[0].design.variance_ratio,
            "simulations": results[0].design.simulations,
            "rng_seed": results[0].design.rng_seed,
        },
        "results": [
            {
                "effect": p.design.effect,
                "seeds": p.design.seeds,
                "pass_probability": p.pass_probability,
                "monte_carlo_error": p.monte_carlo_error,
                "coverage": share(p.covered, p.design.simulations),
                "excludes_zero": share(p.excluded_zero, p.design.simulations),
                "type_s": share(p.wrong_sign, p.excluded_zero),
                "mean_estimate_passed": p.mean_estimate_passed,
                "task_sd": p.task_sd,
            }
            for p in results
        ],
        "warnings": warnings(rule, results),
        "target": target,
        "seeds_needed": {str(effect): needed(results, effect, target) for effect in effects},
    }


def share(count: int | None, of: int | None) -> float | None:
    """Return a share; None where either number is."""
    return count / of if count is not None and of else None
