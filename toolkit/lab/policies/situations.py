"""What the policy sees when it decides, which actions it has, which features are on, and where it starts.

A situation is made of the text, the answers and the agent's own calls alone: neither the plan nor the world
nor the noise. Features are indicators; a parameter belongs to a feature and an action. The start values were
set on training and validation tasks, before any run was registered, so that the untrained policy succeeds as
often as the paper's (sec:results, tab:curves): about 0.80 without noise and 0.53 under faults at p = 0.25.
"""

from collections.abc import Mapping
from math import log
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


START: Mapping[Kind, Mapping[Action, float]] = {
    "read": {"go": 0.9970, "slip": 0.0015, "skip": 0.0010, "finish": 0.0005},
    "write": {"go": 0.9925, "slip": 0.0045, "skip": 0.0020, "finish": 0.0010},
    "transient": {"retry": 0.885, "wait": 0.030, "skip": 0.050, "finish": 0.035},
    "rate_limit": {"retry": 0.05, "wait": 0.03, "wait_as_told": 0.88, "skip": 0.025, "finish": 0.015},
    "outage": {"retry": 0.40, "wait": 0.10, "skip": 0.40, "finish": 0.10},
    "timeout": {"go": 0.78, "retry": 0.13, "reread": 0.07, "skip": 0.02},
    "refused": {"go": 0.05, "skip": 0.85, "finish": 0.10},
    "truncated": {"go": 0.09, "paginate": 0.82, "reread": 0.07, "skip": 0.02},
    "stale": {"go": 0.11, "reread": 0.87, "skip": 0.02},
    "dropout": {"go": 0.06, "reread": 0.92, "skip": 0.02},
}
"""Kind of situation → action → probability where no other feature speaks."""

SHIFTS: Mapping[tuple[Feature, Action], float] = {
    (("read", "indirect"), "slip"): 0.5,
    (("read", "ambiguous"), "slip"): 6.4,
    (("write", "indirect"), "slip"): 0.5,
    (("write", "ambiguous"), "slip"): 5.45,
    (("transient", "write"), "skip"): 0.75,
    (("transient", "write"), "finish"): 0.75,
}
"""Feature and action → what is added to the logit."""


def start_parameters() -> dict[tuple[Feature, Action], float]:
    """Return the start value of every action parameter, in the order of the parameters."""
    values = {}
    for feature in every_feature():
        kind, name = feature
        base = START[kind] if name in _BASES else None
        for action in ACTIONS[kind]:
            # Rounded, so that no machine's logarithm matters.
            logit = round(log(base[action]), 6) if base else 0.0
            values[feature, action] = logit + SHIFTS.get((feature, action), 0.0)
    return values


_BASES = frozenset({"plain", "indirect", "ambiguous", "read", "write"})
