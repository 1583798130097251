"""Regimes: the noise settings under which episodes are played.

Source:
    Paper sec:protocol, "Noise" and "Evaluation"; weights 0.45, 0.15, 0.10, 0.15, 0.15.
"""

from dataclasses import dataclass

from toolkit.noise.draws import Draw, Schedule
from toolkit.noise.faults import Mixture
from toolkit.noise.tools import Fault, Tool

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
    # Whether the first attempt of every write request fails transiently, and nothing else
    challenge: bool = False

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
