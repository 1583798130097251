"""One step of GRPO: play the step's groups, compare rewards within each, and climb.

1. Every rollout of every group is played by the policy as it is. Where constant groups are resampled, those
   whose rewards are all alike are dropped, and others drawn until the step has its number of varied ones, or
   has drawn the most that it may: then it goes on with what it has.
2. A rollout's advantage is its reward minus its group's mean, over the group's sample standard deviation plus
   ε unless scaling is off. A group whose rewards are constant has no gradient.
3. The gradient is the sum of advantage times score over all rollouts. It is divided by all decisions and
   tokens of the step (token-level aggregation), or by its number of rollouts.
4. The optimizer takes one step.

Source:
    Paper eq:advantages, eq:g and app:training; token-level aggregation as in the paper's trainer (Yu et al.
    2025, DAPO, whose dynamic sampling is the resampling); a divisor that no length moves: Liu et al. 2025,
    Dr. GRPO.
"""

from functools import lru_cache
from math import sqrt

from toolkit.estimators.advantages import EPSILON
from toolkit.lab.policies.agent import Rollout, weighted_scores
from toolkit.lab.policies.loglinear import Policy
from toolkit.lab.training.checkpoint import Weights, ascend
from toolkit.lab.training.rows import POOL, RESAMPLED, GroupPlan, draws_at
from toolkit.lab.worlds.world import AnyEpisode, play
from toolkit.noise.regimes import REGIMES
from toolkit.registers.arrow import Row
from toolkit.seeds import rollout_seed, sampling_seed
from toolkit.specification import Specification

Played = tuple[Rollout, AnyEpisode]


def train_step(specification: Specification, before: Weights) -> tuple[Weights, list[Row]]:
    """Take one training step."""
    policy = Policy(before.parameters, specification.surface_tokens)
    step = before.step + 1
    weighted: list[tuple[Rollout, float]] = []
    rows: list[Row] = []
    symbols = taken = 0
    for group in draws_at(specification, step):  # 1
        row, rollouts = _play_group(specification, policy, step, group)
        rows.append(row)
        if row["zero_variance"] and specification.constant_groups == RESAMPLED:
            continue
        symbols += row["decisions"]
        if not row["zero_variance"]:
            weighted += zip(rollouts, row["advantages"], strict=True)
        taken += 1
        if taken == specification.prompts_per_step:
            break
    divisor = symbols if specification.loss_type == "dapo" else taken * specification.group_size  # 3
    # Where every group was dropped the gradient is nothing, whatever it is divided by.
    gradient = [part / max(divisor, 1) for part in weighted_scores(policy, weighted)]
    rate, decay = float(specification.learning_rate), float(specification.square_decay)
    return ascend(before, gradient, rate, specification.optimizer, decay), rows  # 4


def _play_group(
    specification: Specification, policy: Policy, step: int, group: GroupPlan
) -> tuple[Row, list[Rollout]]:
    """Play a group; return its row and its rollouts."""
    slots = range(len(group.schedule_seeds))
    played = [play_rollout(specification, policy, step, group, slot) for slot in slots]
    rewards = tuple(episode.observed_reward for _, episode in played)
    advantages = advantages_of(rewards, scaled=specification.scale_rewards == "group")  # 2
    row = _row(group, [episode for _, episode in played], advantages)
    row |= {"run_id": specification.run_id, "step": step}
    row["decisions"] = sum(len(rollout.decisions) + len(rollout.tokens) for rollout, _ in played)
    return row, [rollout for rollout, _ in played]


def play_rollout(
    run: Specification, policy: Policy, step: int, group: GroupPlan, slot: int, *, traced: bool = False
) -> Played:
    """Play one rollout of a group and return what the policy chose and what became of it."""
    seed = rollout_seed(sampling_seed(run.root, run.run_id, run.seed), step, group.position, slot)
    noise = (REGIMES[group.regime], group.schedule_seeds[slot])
    return play(policy, f"{POOL}:{group.task}", *noise, seed, world=run.world, traced=traced)


@lru_cache(maxsize=1024)
def advantages_of(rewards: tuple[int, ...], *, scaled: bool) -> tuple[float, ...]:
    """Return the advantages of rewards in {0, 1}."""
    size, ones = len(rewards), sum(rewards)
    if ones in (0, size):
        return (0.0,) * size
    mean = ones / size
    divisor = sqrt(ones * (size - ones) / (size * (size - 1))) + EPSILON if scaled else 1.0
    return tuple((reward - mean) / divisor for reward in rewards)


def _row(group: GroupPlan, episodes: list[AnyEpisode], advantages: tuple[float, ...]) -> Row:
    successes = [episode.true_success for episode in episodes]
    rewards = [bool(episode.observed_reward) for episode in episodes]
    varied = len(set(rewards)) > 1
    return {
        "position": group.position,
        "task": group.task,
        "regime": group.regime,
        "schedule_seeds": list(group.schedule_seeds),
        "true_successes": successes,
        "observed_rewards": rewards,
        "advantages": list(advantages),
        "exposed": sum(bool(episode.exposures) for episode in episodes),
        "zero_variance": not varied,
        "spurious": all(successes) and varied,
    }
