"""Probing one checkpoint: from a policy to evidence, and from evidence to every figure.

1. The rollouts of both sets are played by the policy and scored.
2. Their evidence is gathered: Gram matrices and products of mean gradients.
3. Everything else is computed from the evidence, by the same code that computes it from a register.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError
from toolkit.policies.loglinear import Policy
from toolkit.probe.design import OUTCOME, TRANSITION, Design, Listed
from toolkit.probe.evidence import GramEvidence, Place, gather, gram_rows
from toolkit.probe.identities import Identity, identities
from toolkit.probe.moments import ESTIMATORS, MC, moments
from toolkit.probe.rollouts import coordinate_blocks, play_and_score
from toolkit.probe.summary import estimates, probe_row, sides
from toolkit.probe.uncertainty import Resampling, interval_rows
from toolkit.registers.arrow import Row


class ScoredPolicy(NamedTuple):
    """A policy that was probed.

    Args:
        sha256: of its adapter or of its checkpoint; None for a fresh adapter.
        fingerprint: of the parameters that were scored.
        names_sha256: of the names of the scored coordinates.
        coordinates: how many they are.
    """

    sha256: str | None
    fingerprint: str
    names_sha256: str
    coordinates: int


EVIDENCE = "probe_gram"
DERIVED = ("probe", "probe_intervals", "probe_clean_tasks", "probe_diagnostic_tasks")
"""Tables of which every row follows from the evidence."""


def measure(
    policy: Policy, checkpoint: tuple[str, int], sampling: int, design: Design, groups: Listed
) -> dict[str, dict[str, GramEvidence]]:
    """Play, score and gather (steps 1 and 2).

    Args:
        policy: the policy at the checkpoint.
        checkpoint: its trajectory and step.
        sampling: sampling seed of its trajectory.
        design: the probe.
        groups: design → task → groups of the transition set.

    Returns:
        Scored coordinates → noise → evidence.
    """
    parts = coordinate_blocks(policy.layout, design.scored)
    by_name: dict[str, dict[str, GramEvidence]] = {name: {} for name in design.scored}
    for rollouts in design.sets:
        played = play_and_score(policy, rollouts, sampling, checkpoint[1])  # 1
        regrouped = groups if rollouts.noise == TRANSITION else None
        gathered = gather(  # 2
            rollouts.noise, played, parts, design.scored, flip_rate=design.flip_rate, groups=regrouped
        )
        for name, evidence in gathered.items():
            by_name[name][rollouts.noise] = evidence
    return by_name


def evidence_rows(place: Place, evidence: Mapping[str, GramEvidence], design: Design) -> list[Row]:
    """Return the rows of `probe_gram` of one checkpoint and what was scored."""
    return [row for rollouts in design.sets for row in gram_rows(place, rollouts, evidence[rollouts.noise])]


def reference_tokens(evidence: Mapping[str, GramEvidence], design: Design) -> float:
    """Return T_ref: the tokens of a training step's rollouts, at the mean of all that were scored.

    Raises:
        DamagedError: no rollout has a token.

    Source:
        Paper app:probe, "Estimators".
    """
    tokens = [evidence[rollouts.noise].tokens for rollouts in design.sets]
    total, number = sum(int(part.sum()) for part in tokens), sum(part.size for part in tokens)
    if not total:
        raise DamagedError("no rollout of the probe has a token", expected="tokens that the loss counts")
    return design.rollouts_per_step * total / number


def derive(
    place: Place, evidence: Mapping[str, GramEvidence], design: Design, groups: Listed
) -> tuple[dict[str, list[Row]], tuple[Identity, ...]]:
    """Compute all figures of one checkpoint and what was scored (step 3).

    Args:
        place: what they belong to.
        evidence: noise → evidence.
        design: the probe.
        groups: design → task → groups of the transition set.

    Returns:
        Table → rows, and the identities that tie the figures.
    """
    rows: dict[str, list[Row]] = {name: [] for name in DERIVED}
    tied: list[Identity] = []
    normalizer = reference_tokens(evidence, design)
    for rollouts in design.sets:
        of_noise, regrouped = evidence[rollouts.noise], groups if rollouts.noise == TRANSITION else None
        by_design = moments(
            of_noise.noise,
            of_noise.rewards,
            of_noise.weights,
            of_noise.gram,
            flip_rate=design.flip_rate,
            groups=regrouped,
        )
        by_estimator = estimates(of_noise, by_design, normalizer)
        both = sides(of_noise) if rollouts.noise == OUTCOME else None
        how = Resampling(design.level, design.resamples, design.rng_seed, rollouts.schedules)
        for name in ESTIMATORS:
            rows["probe"].append(probe_row(of_noise, name, by_estimator[name], design.flip_rate))
            mine = both if name == MC else None
            rows["probe_intervals"] += interval_rows(rollouts.noise, name, by_estimator[name], mine, how)
        tied += identities(of_noise, by_design, by_estimator, design.flip_rate)
        if both is not None:
            rows["probe_clean_tasks"] = [
                {
                    "task_id": f"{rollouts.pool}:{task}",
                    "successes": int(both.successes[task]),
                    "condition_left": float(both.left[task]),
                    "condition_right": float(both.right[task]),
                }
                for task in range(rollouts.tasks)
            ]
        else:
            # Sums over groups, as the published register has them.
            counts = {name: len(next(iter(tasks.values()))) for name, tasks in groups.items()}
            rows["probe_diagnostic_tasks"] = [
                {
                    "task_id": f"{rollouts.pool}:{task}",
                    **{
                        f"squared_norms_{d}": max(0.0, float(s[task])) * counts[d]
                        for d, s in by_estimator[MC].second.items()
                    },
                }
                for task in range(rollouts.tasks)
            ]
    return {name: [place._asdict() | row for row in regrouped] for name, regrouped in rows.items()}, tuple(
        tied
    )


def checkpoint_row(
    place: Place, evidence: Mapping[str, GramEvidence], design: Design, policy: ScoredPolicy
) -> Row:
    """Return a row of `probe_checkpoints`: what was scored, and the importance weights met.

    Args:
        place: the checkpoint, and what was scored.
        evidence: noise → evidence.
        design: the probe.
        policy: the policy that was scored.
    """
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
    """Return what a row of `probe_checkpoints` says of the clean rollouts' importance weights.

    Raises:
        DamagedError: all of them are 0.
    """
    used = weights[weights > 0]
    if not used.size:
        raise DamagedError("every clean rollout has importance weight 0", where="importance weights")
    return {
        "masked_rollouts": int((weights == 0).sum()),
        "weight_mean": float(used.mean()),
        "weight_min": float(used.min()),
        "weight_max": float(used.max()),
    }
