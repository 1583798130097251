"""A run as a chain of segments: what is played between two checkpoints, and the rows that it leaves.

A segment ends at a checkpoint. The first one ends at step 0: nothing is trained, the untrained policy is
evaluated. Each further segment starts from the checkpoint before it and from nothing else, so that a run that
was cut off goes on from its newest checkpoint and leaves the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from toolkit.registers.arrow import Row
    from toolkit.training.specification import Specification

Segment: TypeAlias = "dict[str, list[Row]]"
"""Table → rows: `groups`, `episodes`, `luck_share` and one row of `checkpoints`."""


def ends(specification: Specification) -> tuple[int, ...]:
    """Return the steps at which a run's segments end: 0 and every checkpoint."""
    return tuple(range(0, specification.steps + 1, specification.checkpoint_every))


def play_segment(specification: Specification, end: int, before: Row | None) -> Segment:
    """Play one segment.

    Args:
        specification: the run.
        end: step at which the segment ends.
        before: row of `checkpoints` at the end of the segment before; None for the first segment.
    """
    raise NotImplementedError
