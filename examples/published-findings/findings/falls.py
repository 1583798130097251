"""Finding: P13's "falls with training" under three readings, trajectory by trajectory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from findings.checkpoints import BASE, named, traces
from findings.evidence import Analysis, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from findings.evidence import Evidence

READINGS: dict[str, Callable[[Sequence[float]], bool]] = {
    "endpoint": lambda ratios: ratios[-1] < ratios[0],
    "all_below_base": lambda ratios: all(ratio < ratios[0] for ratio in ratios[1:]),
    "monotone": lambda ratios: all(after < before for before, after in pairwise(ratios)),
}


def falls_with_training(evidence: Evidence) -> Analysis:
    """Read the outcome-noise ratios of each trajectory from the untrained policy on."""
    rows = traces(evidence, "outcome")
    ratios = {named(row): row["trace_paired"] / row["trace_independent"] for row in rows}
    bases = [row for row in rows if row["trajectory"] == BASE]
    trajectories = sorted({row["trajectory"] for row in rows} - {BASE})
    if len(bases) != 1 or not trajectories:
        raise Unavailable("the probe has no untrained policy, or no checkpoint after it")
    paths = {
        name: [named(row) for row in (*bases, *(r for r in rows if r["trajectory"] == name))]
        for name in trajectories
    }
    held = {
        reading: [name for name, path in paths.items() if holds([ratios[place] for place in path])]
        for reading, holds in READINGS.items()
    }
    return Analysis(
        {
            "trajectories": trajectories,
            **{f"checkpoints_{name}": list(path) for name, path in paths.items()},
            **{f"ratios_{name}": [ratios[place] for place in path] for name, path in paths.items()},
            **{f"{reading}_holds_on": list(names) for reading, names in held.items()},
        },
        f"From the untrained policy on, the ratio {_told(held, trajectories)}. "
        + ("A declared reading decides." if _disagree(held) else "All readings agree."),
        "probe (outcome, MC): trace_paired over trace_independent",
    )


def _told(held: dict[str, list[str]], trajectories: list[str]) -> str:
    meanings = {
        "endpoint": "ends below its start",
        "all_below_base": "stays below its start throughout",
        "monotone": "falls from checkpoint to checkpoint",
    }
    return ", ".join(f"{meanings[name]} on {_which(where, trajectories)}" for name, where in held.items())


def _which(where: list[str], trajectories: list[str]) -> str:
    if not where:
        return "no trajectory"
    if where == trajectories:
        return "every trajectory"
    return " and ".join(where)


def _disagree(held: dict[str, list[Any]]) -> bool:
    return len({tuple(where) for where in held.values()}) > 1
