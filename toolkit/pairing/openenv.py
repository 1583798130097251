"""The public names of `toolkit.noise.trainers.openenv`."""

from toolkit.noise.trainers.openenv import Paired

__all__ = ["Paired"]
