"""The public names of `toolkit.noise.trainers.verifiers`."""

from toolkit.noise.trainers.verifiers import (
    Config,
    NoisyData,
    NoisyState,
    NoisyToolset,
    Slot,
    State,
    observed,
    slots,
)

__all__ = ["Config", "NoisyData", "NoisyState", "NoisyToolset", "Slot", "State", "observed", "slots"]
