"""The public names of `toolkit.noise.trainers.groups`."""

from toolkit.noise.trainers.groups import (
    LARGEST_RECORD,
    Group,
    Groups,
    Outcome,
    Place,
    Rollout,
    Verified,
    observed,
    read,
    verify,
)

__all__ = [
    "LARGEST_RECORD",
    "Group",
    "Groups",
    "Outcome",
    "Place",
    "Rollout",
    "Verified",
    "observed",
    "read",
    "verify",
]
