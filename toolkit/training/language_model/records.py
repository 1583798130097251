"""The rows of a step's groups, from the trainer's own batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from toolkit.errors import DamagedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.registers.arrow import Row
    from toolkit.training.language_model.environment import BackOffice


class Rollout(NamedTuple):
    """What became of one rollout of a batch.

    Args:
        step, position, task, regime: its group.
        slot: its slot in the group.
        schedule_seed: seed of the schedule that its environment had.
        true_success, observed_reward: its outcome, and the reward that the grader reported.
        exposed: whether it met a fault.
        advantage: as the trainer computed it.
        tokens: tokens that the loss counts.
        weight: importance weight; None where the trainer computes none.
    """

    step: int
    position: int
    task: int
    regime: str
    slot: int
    schedule_seed: int
    true_success: bool
    observed_reward: bool
    exposed: bool
    advantage: float
    tokens: int
    weight: float | None

    @classmethod
    def of(
        cls,
        row: Mapping[str, Any],
        environment: BackOffice,
        advantage: float,
        tokens: int,
        weight: float | None,
    ) -> Self:
        """Return a rollout as its environment saw it.

        Raises:
            DamagedError: the environment was reset with another row, or played another schedule.
        """
        episode = environment._graded()  # noqa: SLF001 - public methods are tools
        expected = (row["group_index"], row["rollout_slot"], row["schedule_seed"])
        found = (*(environment.place or (-1, -1)), episode.schedule.seed)
        if found != expected:
            raise DamagedError(
                "a rollout was not played in its own environment",
                expected="group {}, slot {}, schedule seed {}".format(*expected),
                found="group {}, slot {}, schedule seed {}".format(*found),
                where=f"step {row['step']}",
            )
        return cls(
            row["step"],
            row["position"],
            row["task"],
            row["regime"],
            row["rollout_slot"],
            episode.schedule.seed,
            episode.true_success,
            bool(episode.observed_reward),
            bool(episode.exposures),
            advantage,
            tokens,
            weight,
        )


def group_rows(rollouts: Sequence[Rollout], size: int) -> list[Row]:
    """Return a batch's rows of `groups`, without the run's name.

    Args:
        rollouts: of all processes, in the order of the batch.
        size: rollouts in a group, G.
    """
    rows = []
    for first in range(0, len(rollouts), size):
        group = rollouts[first : first + size]
        rewards = [rollout.observed_reward for rollout in group]
        varied = len(set(rewards)) > 1
        weights = {"importance_weights": [rollout.weight for rollout in group]}
        rows.append(
            {
                "step": group[0].step,
                "position": group[0].position,
                "task": group[0].task,
                "regime": group[0].regime,
                "schedule_seeds": [rollout.schedule_seed for rollout in group],
                "true_successes": [rollout.true_success for rollout in group],
                "observed_rewards": rewards,
                "advantages": [rollout.advantage for rollout in group],
                "decisions": sum(rollout.tokens for rollout in group),
                "exposed": sum(rollout.exposed for rollout in group),
                "zero_variance": not varied,
                "spurious": varied and all(rollout.true_success for rollout in group),
                "tokens": [rollout.tokens for rollout in group],
                **(weights if group[0].weight is not None else {}),
            }
        )
    return rows
