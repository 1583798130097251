"""What noise has to know of a tool: its kind, which record a call is about, what an answer can lose."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["read", "list", "write", "control"]
Stale = Literal["snapshot", "recorded", "never"]
Fault = Literal[
    "transient",
    "rate_limit",
    "outage",
    "stale_read",
    "truncation",
    "timeout_after_commit",
    "field_dropout",
]

ANY_RESOURCE = "*"

# A read cannot time out after a commit, a write cannot be stale, only a list can be cut.
APPLIES: dict[Kind, tuple[Fault, ...]] = {
    "read": ("transient", "rate_limit", "outage", "stale_read", "field_dropout"),
    "list": ("transient", "rate_limit", "outage", "stale_read", "truncation", "field_dropout"),
    "write": ("transient", "rate_limit", "outage", "timeout_after_commit"),
    "control": (),
}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, as noise sees it."""

    name: str  # its name
    # A `list` is a read that answers with items; `control` tools touch no record and meet no fault
    kind: Kind
    # The argument that names the record a call is about; None where free text would, or nothing
    resource: str | None = None
    # Name of the answer's record or list of items, a path of names with dots between; None where the
    # whole answer is it
    shows: str | None = None
    # Fields of that record, one of which may be lost; none where any that an answer has may be
    fields: tuple[str, ...] = ()
    # The argument with which a cut list is continued; None where only asking again shows the rest
    offset: str | None = None
    repeatable: bool = False  # whether a write that is carried out twice leaves what it leaves once
    # How the state before the last write is seen: on a `snapshot`, as the `recorded` answer to the same
    # call before that write, or `never`: then no read of the tool is stale
    stale: Stale = "snapshot"
    # Types that a call of it may meet, in the order of `APPLIES`
    faults: tuple[Fault, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        never = "stale_read" if self.stale == "never" else None
        object.__setattr__(self, "faults", tuple(fault for fault in APPLIES[self.kind] if fault != never))
