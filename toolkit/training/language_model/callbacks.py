"""What the trainer tells while it trains: that a step is done, and that a checkpoint is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.training.language_model.session import Moments


def checkpoint_callback(moments: Moments) -> Any:
    """Return a callback of Transformers' trainer."""
    from transformers import TrainerCallback

    class Told(TrainerCallback):  # type: ignore[misc]
        """Tells the step."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            moments.stepped(state.global_step)

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            moments.saved(state.global_step)

    return Told()
