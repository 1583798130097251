"""Regimes, the noise settings under which episodes are played; and the faults that a draw makes of a call.

Source:
    Paper sec:protocol, "Noise" and "Evaluation", and app:env; weights 0.45, 0.15, 0.10, 0.15, 0.15.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.noise.draws import Draw, Schedule
from toolkit.noise.tools import APPLIES, Fault, Kind, Tool

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
    """Weights of the fault types, renormalized over those that a call may meet."""

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


DEFAULT = Mixture({"transient": 45, "rate_limit": 15, "outage": 10, "stale_read": 15, "truncation": 15})
# The registered outage-free mixture: transient 1/2, the other three 1/6 each.
OUTAGE_FREE = Mixture({"transient": 3, "rate_limit": 1, "stale_read": 1, "truncation": 1})
# The default mixture with four times the weight on outages, which no policy can recover from.
OUTAGE_HEAVY = Mixture({"transient": 45, "rate_limit": 15, "outage": 40, "stale_read": 15, "truncation": 15})
HELD_OUT = Mixture({"timeout_after_commit": 1, "field_dropout": 1})


@dataclass(frozen=True)
class Regime:
    """A noise setting."""

    name: str  # its name in registers and on the command line
    about: str  # what happens under it
    fault_rate: float = 0.0  # p, the probability of a fault per eligible call
    mixture: Mixture | None = None  # of which types; None where there are no random faults
    flip_rate: float = 0.0  # q, the probability that a success is graded a failure
    challenge: bool = False  # whether the first attempt of every write fails transiently, and nothing else

    @property
    def ceiling(self) -> float:
        """The gate from which on no call meets a fault; 0 where none ever does, so that none needs a draw."""
        return 1.0 if self.challenge else self.fault_rate if self.mixture else 0.0

    def fault(self, tool: Tool, repeat: int, draw: Draw) -> Fault | None:
        """Return the fault that a call meets."""
        if self.challenge:
            return "transient" if tool.kind == "write" and repeat == 0 else None
        if self.mixture is None or draw.gate >= self.fault_rate:
            return None
        return self.mixture.pick(tool.faults, draw)

    def flips(self, schedule: Schedule) -> bool:
        """Return whether a success under this schedule is graded a failure."""
        return self.flip_rate > 0 and schedule.grader().gate < self.flip_rate


_REGIMES = (
    Regime("clean", "No fault, no flip."),
    Regime("faults_p010", "Faults of the default mixture at p = 0.10.", 0.10, DEFAULT),
    Regime("faults_p025", "Faults of the default mixture at p = 0.25.", 0.25, DEFAULT),
    Regime("faults_p025_outage_free", "Faults at p = 0.25, none of them an outage.", 0.25, OUTAGE_FREE),
    Regime(
        "faults_p025_outage_heavy", "Faults at p = 0.25, outages four times as likely.", 0.25, OUTAGE_HEAVY
    ),
    Regime("held_out_types", "The two types never met in training, at p = 0.25.", 0.25, HELD_OUT),
    Regime(
        "challenge",
        "The first attempt of every write request (tool and resource) fails transiently.",
        challenge=True,
    ),
    Regime("flips_q005", "A success is graded a failure with probability 0.05.", flip_rate=0.05),
    Regime("flips_q010", "A success is graded a failure with probability 0.10.", flip_rate=0.10),
)

REGIMES = {regime.name: regime for regime in _REGIMES}
