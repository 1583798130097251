"""The page on costs: what was measured of the registered study, and what follows for other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.website.charts.cost import Span, hours_by_gpus, measured_hours
from toolkit.website.page import Page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.training.costs import Costs, Policy
    from toolkit.training.plan import Range
    from toolkit.website.material import Material

NAME = "costs.html"
HOUR = 3600
GIGA = 10**9
# What is more than a number of hours is said in whole ones.
MANY = 100


def pages(material: Material) -> Iterator[Page]:
    """Yield the page on costs; none where the project lists no measurements."""
    costs = material.costs
    if costs is None:
        return
    measured, larger = costs.policies
    yield Page(
        NAME,
        "costs.html",
        "Costs: what running the registered study takes",
        "costs",
        {
            "costs": costs,
            "runs": len(costs.runs),
            "episodes": sum(run.episodes for run in costs.runs),
            "measured": [_measured(costs, entry.id) for entry in costs.measured],
            "policies": [_policy(policy) for policy in costs.policies],
            "ratio": f"{larger.operations / measured.operations:.1f}",
            "measured_chart": measured_hours(
                tuple(
                    (
                        entry.id.upper(),
                        tuple((run.run_id, round(run.seconds / HOUR, 3)) for run in entry.runs),
                    )
                    for entry in costs.measured
                    if entry.study == costs.measured[0].study
                )
            ),
            "gpus_chart": hours_by_gpus(_spans(costs), len(costs.runs)),
            "processors": [{"number": n, "seconds": f"{hours * HOUR:.0f}"} for n, hours in costs.processors],
            "tokens": [f"{tokens / GIGA:.2f}" for tokens in costs.tokens],
            "operations": f"{costs.operations:.2g}",
            "assumed": [
                {"tokens": f"{n:,}", "hours": f"{hours:,.1f}", "all": f"{hours * len(costs.runs):,.0f}"}
                for n, hours in costs.at_most
            ],
        },
    )


def said(hours: Range | None) -> str:
    """Return a range of hours as readers read it."""
    if hours is None:
        return "not evaluable"
    form = ",.0f" if hours.high >= MANY else ",.1f"
    if hours.low is None:
        return f"at most {hours.high:{form}}"
    ends = f"{hours.low:{form}} to {hours.high:{form}}"
    return ends if hours.mean is None else f"{hours.mean:{form}} ({ends})"


def _measured(costs: Costs, name: str) -> dict[str, Any]:
    entry = costs.with_id(name)
    return {
        **{key: getattr(entry, key) for key in ("title", "study", "hardware", "date", "query")},
        "runs": len(entry.runs),
        "hours": f"{entry.seconds / HOUR:,.2f}" if entry.runs else None,
        "each": f"{entry.seconds / HOUR / len(entry.runs):,.4g}" if entry.runs else None,
    }


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "parameters": f"{policy.parameters / GIGA:.1f}",
        "source": policy.source,
        "gpus": policy.gpus,
        "run": said(policy.run),
        "has_rate": policy.rate is not None,
        "schedules": [
            {
                "gpus": s.gpus,
                "slots": s.slots,
                "hours": said(s.hours),
                "gpu_hours": said(s.gpu_hours),
                "kept_hours": said(s.kept_hours),
            }
            for s in policy.schedules
        ],
    }


def _spans(costs: Costs) -> tuple[Span, ...]:
    return tuple(
        Span(
            policy.name.rpartition("/")[2],
            s.gpus,
            round(s.hours.low, 3),
            None if s.hours.mean is None else round(s.hours.mean, 3),
            round(s.hours.high, 3),
        )
        for policy in costs.policies
        for s in policy.schedules
        if s.hours is not None and s.hours.low is not None
    )
