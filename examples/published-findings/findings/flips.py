"""Finding: the spurious rates of the independent arm, seed by seed, against the closed form."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from findings.evidence import INDEPENDENT, Analysis, Unavailable
from toolkit.estimators import chi_square_tail, spurious_rate

if TYPE_CHECKING:
    from findings.evidence import Evidence
    from toolkit.decisions.measure import Row

CONDITION = "C4"
SIGNIFICANT = 0.05


def spurious_by_seed(evidence: Evidence) -> Analysis:
    """Compare each seed's spurious rate with 1 - (1 - q)^G - q^G."""
    runs = evidence.runs(CONDITION, INDEPENDENT)
    expected = _expected(list(runs.values()))
    groups = {row["run_id"]: row for row in evidence.rows("groups_summary")}
    rates, scores = [], []
    for run in runs.values():
        row = groups.get(run["run_id"])
        if row is None or not row["all_correct"]:
            raise Unavailable(f"run {run['run_id']!r} has no all-correct group")
        rates.append(row["spurious"] / row["all_correct"])
        error = math.sqrt(expected * (1 - expected) / row["all_correct"])
        scores.append((rates[-1] - expected) / error)
    statistic = math.fsum(z * z for z in scores)
    p_value = chi_square_tail(statistic, len(scores))
    far = max(range(len(scores)), key=lambda place: abs(scores[place]))
    side = "below" if scores[far] < 0 else "above"
    return Analysis(
        {
            "seeds": list(runs),
            "rates": rates,
            "expected": expected,
            "standard_errors_from_expected": scores,
            "chi_square": statistic,
            "degrees_of_freedom": len(scores),
            "p_value": p_value,
        },
        f"Seed {list(runs)[far]} lies farthest from the closed form: {rates[far]:.3f} is "
        f"{abs(scores[far]):.2f} standard errors {side} {expected:.4f}. Over all seeds chi-square is "
        f"{statistic:.1f} on {len(scores)} degrees of freedom, p = {p_value:.3f}: "
        + ("more" if p_value < SIGNIFICANT else "no more")
        + " than flips alone would scatter them, at 5%; a rate pooled over seeds cannot show that.",
        "runs, groups_summary; binomial standard error at the expected rate, no parameter fitted",
    )


def _expected(runs: list[Row]) -> float:
    designs = {(row["flip_rate"], row["group_size"]) for row in runs}
    if len(designs) != 1:
        raise Unavailable(f"the runs of {CONDITION} differ in flip rate or group size")
    ((flip_rate, group_size),) = designs
    if not group_size:
        raise Unavailable(f"the runs of {CONDITION} have groups of no rollout")
    expected = float(spurious_rate(Fraction(flip_rate), group_size))
    if not 0 < expected < 1:
        raise Unavailable(f"at flip rate {flip_rate} no group is, or every group is, spurious")
    return expected
