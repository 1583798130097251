"""A log-linear policy: a softmax over what a situation allows, and one over surface tokens for every call.

    π(a | s) ∝ exp Σ_{f on in s} θ[f, a]          π(v | tool) ∝ exp θ[tool, v]

Source:
    Paper sec:condition and app:bandit for the geometry; the policy is this project's.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate
from math import factorial, floor, ldexp, log
from typing import Literal, NamedTuple, TypeAlias

from toolkit.lab.backoffice.tools import TOOLS
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
"""Kind of situation → action → probability where no other feature speaks.

Set on training and validation tasks, before any run was registered, so that the untrained policy succeeds as
often as the paper's (sec:results, tab:curves): about 0.80 without noise and 0.53 under faults at p = 0.25.
"""

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


_PER_LOG_2 = 1.4426950408889634
# ln 2 in two parts; the first has 32 trailing zero bits, so that its multiples by whole numbers are exact.
_LOG_2_HIGH = 6.93147180369123816490e-01
_LOG_2_LOW = 1.90821492927058770002e-10
_LARGEST = 700.0
# 1/13!, …, 1/1!: the remainder is at most (ln 2 / 2)^14 / 14!, far below half a unit in the last place.
_TERMS = tuple(1.0 / factorial(n) for n in range(13, 0, -1))


def exp(x: float) -> float:
    """Return e^x by sums and products alone, which give the same bits on every machine."""
    if not -_LARGEST <= x <= _LARGEST:
        raise OverflowError(f"the exponential of {x} is out of range")
    halvings = floor(x * _PER_LOG_2 + 0.5)
    rest = (x - halvings * _LOG_2_HIGH) - halvings * _LOG_2_LOW
    total = 0.0
    for term in _TERMS:
        total = (total + term) * rest
    return ldexp(total + 1.0, halvings)


def softmax(logits: list[float]) -> list[float]:
    """Return the probabilities of logits: e^logit over their sum, from left to right."""
    largest = max(logits)
    weights = [exp(logit - largest) for logit in logits]
    total = 0.0
    for weight in weights:
        total += weight
    return [weight / total for weight in weights]


@dataclass(frozen=True)
class Layout:
    """Where each parameter stands."""

    surface_tokens: int  # V; 0 for none
    actions: dict[tuple[Feature, Action], int]  # (feature, action) → position
    tokens: dict[str, int]  # tool → position of its first token
    size: int  # number of parameters


@lru_cache
def layout(surface_tokens: int) -> Layout:
    """Return the layout of a policy with V surface tokens: actions by feature first, then tokens by tool."""
    actions = {parameter: position for position, parameter in enumerate(start_parameters())}
    tokens = {tool: len(actions) + position * surface_tokens for position, tool in enumerate(TOOLS)}
    return Layout(
        surface_tokens, actions, tokens if surface_tokens else {}, len(actions) + surface_tokens * len(TOOLS)
    )


@lru_cache
def untrained(surface_tokens: int) -> tuple[float, ...]:
    """Return the parameters of the untrained policy; its surface tokens are equally likely."""
    return (*start_parameters().values(), *[0.0] * (surface_tokens * len(TOOLS)))


class Choice:
    """A softmax, ready to be sampled from."""

    __slots__ = ("bounds", "on", "positions", "probabilities")

    def __init__(
        self, on: Situation | str, positions: Sequence[Sequence[int]], probabilities: list[float]
    ) -> None:
        self.on = on
        self.positions = positions
        self.probabilities = probabilities
        self.bounds = list(accumulate(probabilities))[:-1]

    def pick(self, unit: float) -> int:
        """Return the option that a number in [0, 1) falls on."""
        return bisect_right(self.bounds, unit)


class Policy:
    """A policy with its parameters; its choices are computed once each."""

    def __init__(self, parameters: Sequence[float], surface_tokens: int) -> None:
        self.layout = layout(surface_tokens)
        if len(parameters) != self.layout.size:
            raise ValueError(f"the policy has {self.layout.size} parameters, not {len(parameters)}")
        self.parameters = tuple(parameters)
        self._choices: dict[Situation | str, Choice] = {}

    def action(self, situation: Situation) -> Choice:
        """Return the choice among the actions that a situation allows."""
        choice = self._choices.get(situation)
        return choice or self._made(situation, _action_positions(situation, self.layout.surface_tokens))

    def token(self, tool: str) -> Choice:
        """Return the choice among the surface tokens of a tool."""
        choice = self._choices.get(tool)
        return choice or self._made(tool, _token_positions(tool, self.layout.surface_tokens))

    def _made(self, key: Situation | str, positions: Sequence[Sequence[int]]) -> Choice:
        logits = []
        for places in positions:
            logit = 0.0
            for at in places:
                logit += self.parameters[at]
            logits.append(logit)
        choice = self._choices[key] = Choice(key, positions, softmax(logits))
        return choice


@cache
def _action_positions(situation: Situation, surface_tokens: int) -> tuple[tuple[int, ...], ...]:
    on, places = features(situation), layout(surface_tokens).actions
    return tuple(tuple(places[feature, action] for feature in on) for action in ACTIONS[situation.kind])


@cache
def _token_positions(tool: str, surface_tokens: int) -> tuple[tuple[int], ...]:
    first = layout(surface_tokens).tokens[tool]
    return tuple((first + token,) for token in range(surface_tokens))
