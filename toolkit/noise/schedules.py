"""Which rollouts of a training group share a schedule: the two designs.

Source:
    Paper sec:setting: independent, a schedule each; paired, one schedule shared by the group's G rollouts.
"""

from __future__ import annotations

from typing import Literal

from toolkit.seeds import slot_seed

Design = Literal["paired", "independent"]

DESIGNS: tuple[Design, ...] = ("paired", "independent")


def group_seeds(design: Design, row: int, size: int) -> tuple[int, ...]:
    """Return the schedule seed of each rollout of a group.

    Args:
        design: `paired` or `independent`.
        row: schedule seed of the row: one task at one step.
        size: rollouts in the group, G.

    Raises:
        ValueError: there is no such design, or no rollout.
    """
    if size < 1:
        raise ValueError(f"a group has at least one rollout, not {size}")
    if design == "paired":
        return (row,) * size
    if design == "independent":
        return tuple(slot_seed(row, slot) for slot in range(size))
    raise ValueError(f"there is no design {design!r}")
