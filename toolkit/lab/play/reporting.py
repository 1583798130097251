"""A training's figures for whoever watches it: TensorBoard, W&B, Trackio. The run keeps its own rows.

Source:
    transformers 5.16.1, `integrations.get_reporting_integration_callbacks`.
"""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from toolkit.errors import UsageError

TRACKERS = ("tensorboard", "wandb", "trackio")
"""What can be told; each is the name of its package, too."""
FOLDER = "reports"


def check_trackers(names: Sequence[str]) -> None:
    """Check that trackers can be told anything."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise UsageError(
            "a tracker's package is not installed",
            expected=", ".join(names),
            found=f"without {', '.join(missing)}",
            remedy=f"pip install {' '.join(missing)}; or leave --report-to out: the run keeps its own rows",
        )


def report(trainer: Any, names: Sequence[str], folder: Path) -> None:
    """Have trackers told what a trainer logs of each step.

    They write below the run's folder; W&B sends nothing, unless WANDB_MODE says otherwise: a run does not
    depend on a network.
    """
    if not names:
        return
    check_trackers(names)
    from transformers.integrations import get_reporting_integration_callbacks

    places = {name: str(folder / FOLDER / name) for name in TRACKERS}
    os.environ |= {"TENSORBOARD_LOGGING_DIR": places["tensorboard"], "WANDB_DIR": places["wandb"]}
    os.environ |= {"TRACKIO_DIR": places["trackio"]}
    os.environ.setdefault("WANDB_MODE", "offline")
    for name in names:
        Path(places[name]).mkdir(parents=True, exist_ok=True)
    trainer.args.run_name = trainer.args.run_name or folder.name
    for callback in get_reporting_integration_callbacks(list(names)):
        trainer.add_callback(callback)
