"""The public names of `toolkit.noise.trainers.trl`."""

from toolkit.noise.trainers.trl import Environment, Paired, Reward, digest, paired

__all__ = ["Environment", "Paired", "Reward", "digest", "paired"]
