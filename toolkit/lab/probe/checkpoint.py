"""Probing one checkpoint of a log-linear policy: its rollouts are played, scored exactly, and gathered."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import DamagedError, UsageError
from toolkit.lab.policies.agent import Rollout, score
from toolkit.lab.policies.loglinear import Layout, Policy
from toolkit.lab.probe.design import ACTIONS, ALL, OUTCOME, TRANSITION, Design, Listed, RolloutSet
from toolkit.lab.probe.evidence import GramEvidence, Place, Scored, gather, gram_rows
from toolkit.lab.probe.figures import reference_tokens
from toolkit.lab.worlds.world import play
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.seeds import evaluation_seed, sample_seed


def play_and_score(
    policy: Policy, rollouts: RolloutSet, sampling: int, step: int, tasks: Iterable[int] | None = None
) -> Scored:
    """Play a set and score every rollout."""
    played = [
        _played(policy, rollouts, sampling, step, task)
        for task in (range(rollouts.tasks) if tasks is None else tasks)
    ]
    shape = (len(played), rollouts.rollouts)
    rewards = np.array([[float(success) for _, success in task] for task in played])
    decisions = np.array([[len(rollout.decisions) for rollout, _ in task] for task in played])
    surface = np.array([[len(rollout.tokens) for rollout, _ in task] for task in played])
    scores = np.array(
        [[score(policy, rollout) for rollout, _ in task] for task in played], dtype=np.float32
    ).reshape(*shape, policy.layout.size)
    if len(bad := np.argwhere(~np.isfinite(scores))):
        task, rollout, coordinate = bad[0].tolist()
        found = f"rollout {rollout} of task {task}, coordinate {coordinate}"
        remedy = "the policy's parameters are damaged or have diverged: check the checkpoint"
        raise DamagedError("a score is not finite", found=found, where=rollouts.name, remedy=remedy)
    return Scored(rewards, {ALL: decisions + surface, ACTIONS: decisions}, np.ones(shape), scores)


def coordinate_blocks(layout: Layout, scored: tuple[str, ...]) -> dict[str, slice]:
    """Return the coordinates whose products make those of what is scored, one after the other."""
    unknown = [name for name in scored if name not in (ALL, ACTIONS)]
    if unknown or not scored:
        raise UsageError(
            "these coordinates are not the policy's", expected=f"{ALL}, {ACTIONS}", found=", ".join(unknown)
        )
    actions = len(layout.actions)
    return {ACTIONS: slice(0, actions), ALL: slice(actions, layout.size)}


def coordinate_names(layout: Layout, scored: str) -> list[str]:
    """Return the names of the scored coordinates, in order."""
    names = [f"action {feature} {action}" for feature, action in layout.actions]
    if scored == ALL:
        names += [f"token {tool} {token}" for tool in layout.tokens for token in range(layout.surface_tokens)]
    return names


def _played(
    policy: Policy, rollouts: RolloutSet, sampling: int, step: int, number: int
) -> list[tuple[Rollout, bool]]:
    task_id, played = f"{rollouts.pool}:{number}", []
    for schedule in range(rollouts.schedules):
        noise = (REGIMES[rollouts.regime], evaluation_seed(task_id, schedule))
        for sample in range(rollouts.per_schedule):
            seed = sample_seed(sampling, step, rollouts.name, (task_id, schedule, sample))
            rollout, episode = play(policy, task_id, *noise, seed, world=rollouts.world)
            played.append((rollout, episode.true_success))
    return played


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
        gathered = gather(
            rollouts.noise,
            play_and_score(policy, rollouts, sampling, checkpoint[1]),
            parts,
            design.scored,
            flip_rate=design.flip_rate,
            groups=groups if rollouts.noise == TRANSITION else None,
            steps=design.steps,
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
