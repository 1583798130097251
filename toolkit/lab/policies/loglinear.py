"""A log-linear policy: a softmax over what a situation allows, and one over surface tokens for every call.

    π(a | s) ∝ exp Σ_{f on in s} θ[f, a]          π(v | tool) ∝ exp θ[tool, v]

Surface tokens say nothing about success. A language model's calls are full of them, and they set how much
the scores of two rollouts have in common; without them (V = 0) the geometry is that of the paper's
counterexample.

Source:
    Paper sec:condition and app:bandit for the geometry; the policy is this project's.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate
from math import factorial, floor, ldexp

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.policies.situations import ACTIONS, Action, Feature, Situation, features, start_parameters

_PER_LOG_2 = 1.4426950408889634
# ln 2 in two parts; the first has 32 trailing zero bits, so that its multiples by whole numbers are exact.
_LOG_2_HIGH = 6.93147180369123816490e-01
_LOG_2_LOW = 1.90821492927058770002e-10
_LARGEST = 700.0
# 1/13!, …, 1/1!: the remainder is at most (ln 2 / 2)^14 / 14!, far below half a unit in the last place.
_TERMS = tuple(1.0 / factorial(n) for n in range(13, 0, -1))


def exp(x: float) -> float:
    """Return e^x within one unit in the last place, by sums and products alone.

    Libraries compute exp differently, and numpy's depends on the vector unit at hand: one bit in a
    probability is another policy after a hundred steps. Sums and products of doubles are the same everywhere.
    """
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
