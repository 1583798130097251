"""Finding: counts reconcile, and rounded percentages would not do."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from findings.evidence import Analysis, Unavailable, matches
from toolkit.estimators import auc

if TYPE_CHECKING:
    from findings.evidence import Curve, Evidence
    from toolkit.decisions.measure import Row

REFERENCE, ARM, SEED, REGIME = "C0", "clean", 0, "clean"
# One decimal of a percentage.
PRINTED = 1000
# Schedules × rollouts a task, by the meaning of the luck-share register.
DIAGNOSTIC_EPISODES = 8 * 8


def counts(evidence: Evidence) -> Analysis:
    """Add up what runs, groups, evaluations and diagnostics say, and redo one area from printed figures."""
    equations = [equation for row in evidence.rows("runs") for equation in _equations(row, evidence)]
    broken = [name for name, holds in equations if not holds]
    references = evidence.runs(REFERENCE, ARM)
    if SEED not in references:
        raise Unavailable(f"the study has no counted run of {REFERENCE}, {ARM}, seed {SEED}")
    exact, printed = _areas(evidence.curve(references[SEED]["run_id"], REGIME))
    largest = max(abs(a - b) for a, b in map(_areas, _curves(evidence)))
    told = f"All {len(equations)} equations between counts hold"
    if broken:
        told = f"Of {len(equations)} equations between counts {len(broken)} fail: {', '.join(broken)}"
    return Analysis(
        {
            "equations": len(equations),
            "equations_broken": len(broken),
            "reference_auc_exact": float(exact),
            "reference_auc_from_percentages": float(printed),
            "largest_auc_error_of_percentages": float(largest),
        },
        f"{told}. From percentages with one decimal the AUC of "
        f"{REFERENCE} seed {SEED} would be {float(printed):.4f} instead of {float(exact):.4f}: verdicts "
        "compare with exact thresholds, so registers hold counts.",
        "runs, groups_summary, evaluations, luck_share_summary; trapezoidal mean in exact fractions",
    )


def _equations(run: Row, evidence: Evidence) -> list[tuple[str, bool]]:
    """What must add up in one run, and whether it does."""
    name = run["run_id"]
    groups = [row["groups"] for row in evidence.rows("groups_summary") if row["run_id"] == name]
    evaluated = sum(row["episodes"] for row in evidence.rows("evaluations") if row["run_id"] == name)
    # One diagnostic may be summarized for several rewards.
    diagnosed = {
        (row["step"], row["pool"]): row["tasks"]
        for row in evidence.rows("luck_share_summary")
        if row["run_id"] == name
    }
    played = run["training_rollouts"] + evaluated + DIAGNOSTIC_EPISODES * sum(diagnosed.values())
    return [
        (f"groups of {name}", run["training_groups"] == run["steps"] * run["prompts_per_step"]),
        (f"rollouts of {name}", run["training_rollouts"] == run["training_groups"] * run["group_size"]),
        (f"summarized groups of {name}", groups == [run["training_groups"]]),
        (f"episodes of {name}", run["episodes"] == played),
    ]


def _curves(evidence: Evidence) -> list[Curve]:
    """Return every learning curve of the study."""
    where = {"phase": "periodic", "pool": "validation"}
    rows = (row for row in evidence.rows("evaluations") if matches(row, where))
    points = Counter((row["run_id"], row["regime"]) for row in rows)
    return [evidence.curve(run, regime) for (run, regime), size in points.items() if size > 1]


def _areas(curve: Curve) -> tuple[Fraction, Fraction]:
    """Return the area from counts, and from percentages as they would be printed."""
    rounded = [Fraction(math.floor(value * PRINTED + Fraction(1, 2)), PRINTED) for value in curve.values()]
    return auc(list(curve.values()), list(curve)), auc(rounded, list(curve))
