"""What noise has to know of a tool: its kind, which record a call is about, what an answer can lose."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["read", "list", "write", "control"]
Stale = Literal["snapshot", "recorded", "never"]
Fault = Literal[
    "transient", "rate_limit", "outage", "stale_read", "truncation", "timeout_after_commit", "field_dropout"
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
    kind: Kind  # a `list` is a read that answers with items; `control` tools meet no fault
    resource: str | None = None  # the argument that names the record a call is about, if one does
    shows: str | None = None  # dotted name of the answer's record or items; None for the whole answer
    fields: tuple[str, ...] = ()  # fields of that record, one of which may be lost; none for any
    offset: str | None = None  # the argument with which a cut list is continued, if there is one
    repeatable: bool = False  # whether a write that is carried out twice leaves what it leaves once
    # How the state before the last write is seen: on a `snapshot`, as the `recorded` answer to the same
    # call before that write, or `never`: then no read of the tool is stale
    stale: Stale = "snapshot"
    faults: tuple[Fault, ...] = field(init=False, repr=False, compare=False)  # that it may meet

    def __post_init__(self) -> None:
        never = "stale_read" if self.stale == "never" else None
        object.__setattr__(self, "faults", tuple(fault for fault in APPLIES[self.kind] if fault != never))
