"""Probing one checkpoint: from a policy to evidence, and what is said of the checkpoint.

1. The rollouts of both sets are played by the policy and scored.
2. Their evidence is gathered: Gram matrices and products of mean gradients.

Every figure is computed from the evidence by `toolkit.lab.probe.figures`, here as from a register.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError
from toolkit.lab.policies.loglinear import Policy
from toolkit.lab.probe.coordinates import steps_of
from toolkit.lab.probe.design import OUTCOME, TRANSITION, Design, Listed
from toolkit.lab.probe.evidence import GramEvidence, Place, gather, gram_rows
from toolkit.lab.probe.figures import reference_tokens
from toolkit.lab.probe.rollouts import coordinate_blocks, play_and_score
from toolkit.registers.arrow import Row


class ScoredPolicy(NamedTuple):
    """A policy that was probed."""

    sha256: str | None  # of its adapter or of its checkpoint; None for a fresh adapter
    fingerprint: str  # of the parameters that were scored
    names_sha256: str  # of the names of the scored coordinates
    coordinates: int  # how many they are


def measure(
    policy: Policy, checkpoint: tuple[str, int], sampling: int, design: Design, groups: Listed
) -> dict[str, dict[str, GramEvidence]]:
    """Play, score and gather."""
    parts = coordinate_blocks(policy.layout, design.scored)
    by_name: dict[str, dict[str, GramEvidence]] = {name: {} for name in design.scored}
    for rollouts in design.sets:
        played = play_and_score(policy, rollouts, sampling, checkpoint[1])  # 1
        regrouped = groups if rollouts.noise == TRANSITION else None
        gathered = gather(  # 2
            rollouts.noise,
            played,
            parts,
            design.scored,
            flip_rate=design.flip_rate,
            groups=regrouped,
            steps=steps_of(design),
        )
        for name, evidence in gathered.items():
            by_name[name][rollouts.noise] = evidence
    return by_name


def evidence_rows(place: Place, evidence: Mapping[str, GramEvidence], design: Design) -> list[Row]:
    """Return the rows of `probe_gram` of one checkpoint and what was scored."""
    return [row for rollouts in design.sets for row in gram_rows(place, rollouts, evidence[rollouts.noise])]


def checkpoint_row(
    place: Place, evidence: Mapping[str, GramEvidence], design: Design, policy: ScoredPolicy
) -> Row:
    """Return a row of `probe_checkpoints`: what was scored, and the importance weights met."""
    clean = evidence[OUTCOME]
    return {
        **place._asdict(),
        "adapter_sha256": policy.sha256,
        "adapter_fingerprint": policy.fingerprint,
        "coordinate_names_sha256": policy.names_sha256,
        "spec_sha256": design.sha256(),
        "code_commit": None,
        "coordinates": policy.coordinates,
        "clean_rollouts": clean.rewards.size,
        "clean_successes": int(clean.rewards.sum()),
        "diagnostic_rollouts": evidence[TRANSITION].rewards.size,
        **weight_figures(clean.weights),
        "reference_tokens": reference_tokens(evidence, design),
    }


def weight_figures(weights: NDArray[np.float64]) -> Row:
    """Return what a row of `probe_checkpoints` says of the clean rollouts' importance weights."""
    used = weights[weights > 0]
    if not used.size:
        raise DamagedError("every clean rollout has importance weight 0", where="importance weights")
    return {
        "masked_rollouts": int((weights == 0).sum()),
        "weight_mean": float(used.mean()),
        "weight_min": float(used.min()),
        "weight_max": float(used.max()),
    }
