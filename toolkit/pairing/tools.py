"""The public names of `toolkit.noise.trainers.tools`."""

from toolkit.noise.trainers.tools import Method, Noisy, declaration_of, tool

__all__ = ["Method", "Noisy", "declaration_of", "tool"]
