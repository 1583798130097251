"""Secondary analyses of the published study, from its registers: none of them changes a verdict.

Unlike the engine, these functions know the study: which condition, which arm, which probe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from findings.condition import condition_intervals
from findings.counts import counts
from findings.evidence import LABEL, Analysis, Evidence, Finding, Unavailable
from findings.falls import falls_with_training
from findings.flips import spurious_by_seed
from findings.probe import comparator, noise_floor, task_share
from findings.seeds import few_seeds
from findings.start import start

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.decisions.measure import Registers

__all__ = ["FINDINGS", "LABEL", "Evidence", "Finding", "findings"]

FINDINGS: dict[str, tuple[str, Callable[[Evidence], Analysis]]] = {
    "counts": ("Counts reconcile, and rounded percentages would not do", counts),
    "task_share": ("The between-task share of the transition-noise trace", task_share),
    "noise_floor": ("Mean gradients against their noise floor", noise_floor),
    "comparator": ("The comparator that draws schedules with replacement", comparator),
    "spurious_by_seed": ("Spurious rates of the independent arm by seed", spurious_by_seed),
    "start": ("A pair that is unmatched before training", start),
    "few_seeds": ("What a few seeds can say", few_seeds),
    "falls": ('Three readings of "falls with training"', falls_with_training),
    "condition": ("The exact condition with task-bootstrap intervals", condition_intervals),
}


def findings(study: Registers) -> list[Finding]:
    """Compute every finding; one that the study's rows do not allow says so."""
    evidence = Evidence(study)
    return [_computed(identifier, evidence) for identifier in FINDINGS]


def _computed(identifier: str, evidence: Evidence) -> Finding:
    title, compute = FINDINGS[identifier]
    try:
        found = compute(evidence)
    except Unavailable as reason:
        sentence = f"Not evaluable: {reason}."
        return Finding(identifier, title, {}, sentence, "the study's registers", "not_evaluable")
    return Finding(identifier, title, found.numbers, found.sentence, found.source)
