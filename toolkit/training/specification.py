"""What a run is: everything that decides its bytes, frozen before it is launched."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from toolkit.tasks.task import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Specification:
    """The specification of a run.

    Args:
        study: name of the study.
        root: what every seed of the run derives from. It holds the registration's anchor, so that no
            registered run can have been played before the freeze; a pilot's, which comes before it, does not.
        run_id: name of the run.
        condition, arm, seed: its place in the matrix.
        tier: tier of the matrix.
        role: role of the run in the decisions.
        regime: noise of training.
        at_noise: regime of the periodic evaluation at training noise.
        battery: which evaluation sets are played: `registered`, or `learning` for the learning curve alone.
        scale_rewards: `group`: advantages are divided by their group's standard deviation; `none`: not.
        steps: training steps.
        prompts_per_step: groups in a step.
        group_size: rollouts in a group, G.
        learning_rate: Adam's, as decimal text.
        surface_tokens: V, reward-irrelevant tokens a tool is called with; 0 for none.
        checkpoint_every: steps between two checkpoints, each evaluated.
        diagnosed: steps at which the luck share is diagnosed.
        pools: pool → SHA-256 of the tasks that the run may meet.
        code: version of the code that decides the bytes.
    """

    checkpoint_table: ClassVar[str] = "checkpoints"
    """Table that the run's checkpoints are rows of."""

    study: str
    root: str
    run_id: str
    condition: str
    arm: str
    seed: int
    tier: int
    role: str
    regime: str
    at_noise: str
    scale_rewards: str
    battery: str = "registered"
    steps: int = 100
    prompts_per_step: int = 24
    group_size: int = 8
    learning_rate: str = "0.0035"
    surface_tokens: int = 16
    checkpoint_every: int = 20
    diagnosed: tuple[int, ...] = (0, 100)
    pools: Mapping[str, str] = field(default_factory=dict)
    code: str = "1"

    def document(self) -> dict[str, Any]:
        """Return the specification as JSON values."""
        return {**asdict(self), "diagnosed": list(self.diagnosed), "pools": dict(self.pools)}

    def sha256(self) -> str:
        """Return the SHA-256 of the canonical document."""
        return hashlib.sha256(canonical(self.document()).encode()).hexdigest()
