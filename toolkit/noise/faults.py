"""Faults: the five training types, the two held-out ones, and which of them a draw makes of a call.

Source:
    Paper sec:protocol, "Noise", and app:env, "Fault types".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.noise.draws import Draw
from toolkit.noise.tools import APPLIES, Fault, Kind

ABOUT: Mapping[Fault, str] = {
    "transient": "The call returns an error; the next attempt draws a fresh fate.",
    "rate_limit": "An error with a retry-after; every call fails until that long was waited.",
    "outage": "The same request (tool and resource) fails for the rest of the episode.",
    "stale_read": "The read shows the state from before the preceding write.",
    "truncation": "The list is cut and must be paginated.",
    "timeout_after_commit": "The write is applied, but reported as a timeout.",
    "field_dropout": "The read loses one field.",
}

LONGEST_RATE_LIMIT = 5


Bounds = tuple[tuple[float, Fault], ...]


@dataclass(frozen=True)
class Mixture:
    """Weights of the fault types, renormalized over those that a call may meet.

    Raises:
        ValueError: no weight, or one that is not positive.
    """

    weights: Mapping[Fault, int]  # fault → whole weight
    _bounds: dict[tuple[Fault, ...], Bounds] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights.values()) <= 0:
            raise ValueError("a mixture needs positive weights")

    def share(self, kind: Kind, fault: Fault) -> float:
        """Return the probability of a fault type, given that a call of this kind meets a fault."""
        low = 0.0
        for high, name in self.bounds(APPLIES[kind]):
            if name == fault:
                return high - low
            low = high
        return 0.0

    def pick(self, faults: tuple[Fault, ...], draw: Draw) -> Fault | None:
        """Return which of these types a draw's second word names; None where the mixture has none of them."""
        at = draw.type
        for bound, fault in self._bounds.get(faults) or self.bounds(faults):
            if at < bound:
                return fault
        return None

    def bounds(self, faults: tuple[Fault, ...]) -> Bounds:
        """Return the upper end of each type's part of [0, 1), among these types."""
        applicable = [(fault, self.weights[fault]) for fault in faults if fault in self.weights]
        total = sum(weight for _, weight in applicable)
        bounds: list[tuple[float, Fault]] = []
        reached = 0
        for fault, weight in applicable:
            reached += weight
            bounds.append((reached / total, fault))
        return self._bounds.setdefault(faults, tuple(bounds))


def retry_after(draw: Draw) -> int:
    """Return how long a rate limit lasts: 1 to 5 seconds."""
    return 1 + int(draw.magnitude * LONGEST_RATE_LIMIT)


def kept(draw: Draw, items: int) -> int:
    """Return how many items of a page a truncation leaves: 1 to all but one, equally likely; one stays."""
    return 1 + int(draw.magnitude * (items - 1))
