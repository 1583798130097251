"""Learning curves behind an endpoint: every seed's success by step, and their mean."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.decisions.measure import Registers, success_at
from toolkit.decisions.plan import place_of
from toolkit.decisions.values import Missing

if TYPE_CHECKING:
    from toolkit.decisions.endpoints import Endpoint
    from toolkit.decisions.plan import Plan


@dataclass(frozen=True)
class CurvePoint:
    """One point.

    Args:
        arm: the arm.
        series: `seed 0`, …; `mean` over the deciding runs; `replication` for runs shown beside them.
        step: training step.
        success: true success, a fraction in [0, 1].
    """

    arm: str
    series: str
    step: int
    success: Fraction


def curve_points(endpoint: Endpoint, registers: Registers, plan: Plan) -> tuple[CurvePoint, ...]:
    """Return the learning curves of an endpoint's runs on its evaluation set, at every step evaluated.

    Args:
        endpoint: an endpoint over several steps.
        registers: the study.
        plan: the registered runs.

    Returns:
        Points by arm, series and step; a mean only where every deciding seed has a value.
    """
    if not registers.has(endpoint.register):
        return ()
    table = registers.rows(endpoint.register)
    runs = registers.rows("runs")
    steps = sorted(
        {r["step"] for r in table if all(r[name] == value for name, value in endpoint.where.items())}
    )
    points: list[CurvePoint] = []
    deciding = plan.deciding_runs(endpoint, runs)
    for arm in endpoint.arms:
        for step in steps:
            seeds = {s: run for (a, s), run in deciding.items() if a == arm and isinstance(run, str)}
            found = {s: success_at(endpoint, table, run, step) for s, run in seeds.items()}
            values = [value for value in found.values() if not isinstance(value, Missing)]
            points += [
                CurvePoint(arm, f"seed {s}", step, v) for s, v in found.items() if not isinstance(v, Missing)
            ]
            if values and len(values) == len(endpoint.seeds):
                points.append(CurvePoint(arm, "mean", step, sum(values, Fraction(0)) / len(values)))
            for run in runs:
                condition, scaling, ran, seed = place_of(run)
                shown = (condition, scaling, ran) == (endpoint.condition, endpoint.scale_rewards, arm)
                if shown and run["role"] == "replication" and seed in endpoint.seeds:
                    value = success_at(endpoint, table, run["run_id"], step)
                    if not isinstance(value, Missing):
                        points.append(CurvePoint(arm, "replication", step, value))
    return tuple(sorted(points, key=lambda p: (p.arm, p.series, p.step)))
