"""Situations: what the policy sees when it decides, which actions it then has, and which features are on.

A situation is made of the text, the answers and the agent's own calls, and of nothing else: neither the plan
nor the world nor the noise. Features are indicators; a parameter belongs to a feature and an action.
"""

from typing import Literal, NamedTuple, TypeAlias

from toolkit.lab.tasks.templates import WEIGHTS

Action = Literal["go", "slip", "retry", "wait", "wait_as_told", "skip", "paginate", "reread", "finish"]
Kind = Literal[
    "read",
    "write",
    "transient",
    "rate_limit",
    "outage",
    "timeout",
    "refused",
    "truncated",
    "stale",
    "dropout",
]

ACTIONS: dict[Kind, tuple[Action, ...]] = {
    "read": ("go", "slip", "skip", "finish"),
    "write": ("go", "slip", "skip", "finish"),
    "transient": ("retry", "wait", "skip", "finish"),
    "rate_limit": ("retry", "wait", "wait_as_told", "skip", "finish"),
    "outage": ("retry", "wait", "skip", "finish"),
    "timeout": ("go", "retry", "reread", "skip"),
    "refused": ("go", "skip", "finish"),
    "truncated": ("go", "paginate", "reread", "skip"),
    "stale": ("go", "reread", "skip"),
    "dropout": ("go", "reread", "skip"),
}
"""Kind of situation → the actions it allows.

Before a call (`read`, `write`): make it, make a wrong one, drop the errand, end the episode. After an error:
send the call again, at once or after a wait. After a suspicious answer: go on with it, read again, fetch the
rest of the list. `go` after a timeout takes the write for applied; `reread` looks whether it was.
"""

LEVELS = ("plain", "indirect", "ambiguous")
REPEATS = 3
TEMPLATES = tuple(template for template, _ in WEIGHTS)


class Situation(NamedTuple):
    """What a decision is made on."""

    kind: Kind  # what the last answer was, or what the next call is
    template: str  # template of the errand
    level: int  # how directly the text names what the next call needs: an index of `LEVELS`
    repeat: int  # how often the call failed before, at most `REPEATS`
    is_write: bool  # whether the call concerned is a write
    late: bool  # whether as many calls were made as the smallest budget for so many errands allows


Feature: TypeAlias = tuple[Kind, str]


def features(situation: Situation) -> tuple[Feature, ...]:
    """Return the features that are on in a situation."""
    kind = situation.kind
    if kind in ("read", "write"):
        on: list[Feature] = [(kind, LEVELS[situation.level])]
        if kind == "write":
            on.append((kind, situation.template))
    else:
        on = [(kind, "write" if situation.is_write else "read")]
        if kind in ("transient", "rate_limit", "outage"):
            on.append((kind, f"repeat {situation.repeat}"))
    if situation.late:
        on.append((kind, "late"))
    return tuple(on)


def every_feature() -> tuple[Feature, ...]:
    """Return all features, in the order of the parameters."""
    every: dict[Feature, None] = {}
    for kind in ACTIONS:
        for template in TEMPLATES:
            for level in range(len(LEVELS)):
                for repeat in range(REPEATS + 1):
                    for is_write in (False, True):
                        situation = Situation(kind, template, level, repeat, is_write, late=True)
                        every |= dict.fromkeys(features(situation))
    return tuple(every)
