"""The untrained policy: how likely it takes each action before it has learnt anything.

The values were set on training and validation tasks, before any run was registered, so that the untrained
policy succeeds as often as the paper's (sec:results, tab:curves): about 0.80 without noise and 0.53 under
faults at p = 0.25.
"""

from collections.abc import Mapping
from math import log

from toolkit.lab.policies.situations import ACTIONS, Action, Feature, Kind, every_feature

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
    """Return the start value of every action parameter, in the order of the parameters.

    A kind's logits stand in one feature of each of its situations: its level before a call, and otherwise
    whether a write is concerned.
    """
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
