"""What TRL's trainer says of a step, in the words of `steps` and `launches`."""

import math
from collections.abc import Mapping

STEP_TIME = "step_time"
GENERATION_TIME = "generation_time"
"""Added by `GroupTrainer`: TRL has no such figure."""

_ALWAYS = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "clipped": "clip_ratio/region_mean",
    "entropy": "entropy",
}
_OF_TWO_ENGINES = {
    f"importance_weight_{which}": f"sampling/importance_sampling_ratio/{which}"
    for which in ("mean", "min", "max")
}


def step_figures(logs: Mapping[str, float]) -> dict[str, float | None]:
    """Return a step's columns of `steps`; importance weights only where there are any."""
    names = _ALWAYS | {column: name for column, name in _OF_TWO_ENGINES.items() if name in logs}
    return {column: _finite(logs.get(name)) for column, name in names.items()}


def step_seconds(logs: Mapping[str, float]) -> tuple[float, float]:
    """Return how long a step took, and how much of that went to playing its rollouts."""
    return round(logs[STEP_TIME], 3), round(logs[GENERATION_TIME], 3)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
