"""What a registration's verdicts stand on, in a word and what lies behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit.errors import VerificationError
from toolkit.prereg.checks import TOKENS, Check
from toolkit.prereg.record import DEMONSTRATION, PUBLIC
from toolkit.prereg.verification import Verification

if TYPE_CHECKING:
    from toolkit.documents.standing import StandingDocument, StandingName

INCOMPLETE: Final = "incomplete"
FAILED: Final = "failed"
ORDER: tuple[StandingName, ...] = (FAILED, INCOMPLETE, DEMONSTRATION, PUBLIC)
"""From the least to the most that a registration can stand on."""


@dataclass(frozen=True)
class Standing:
    """What a registration's verdicts stand on."""

    # `public` or `demonstration` where every step of its verification passed; `incomplete` where an input
    # is missing; `failed` where a step failed
    name: StandingName
    failed_steps: tuple[str, ...] = ()  # names of the steps that failed
    missing: tuple[str, ...] = ()  # what is missing, each in a line

    def as_dict(self) -> StandingDocument:
        """Return the standing as decisions state it."""
        return {
            "standing": self.name,
            "failed_steps": list(self.failed_steps),
            "missing": list(self.missing),
        }

    def __str__(self) -> str:
        """The standing in words."""
        if self.name == FAILED:
            return f"FAILED: {', '.join(self.failed_steps)}"
        if self.name == INCOMPLETE:
            return f"incomplete: {'; '.join(self.missing)}"
        if self.name == DEMONSTRATION:
            return "demonstration (authorities made for the occasion: proves nothing to others)"
        return self.name


UNVERIFIED = Standing(INCOMPLETE, missing=("it was not verified here",))


def standing_of(verification: Verification) -> Standing:
    """Return what a verified registration's verdicts stand on.

    What its own record says of it counts only where nothing failed and nothing is missing.
    """
    failed = tuple(dict.fromkeys(c.name for c in verification.checks if c.outcome == "failed"))
    missing = tuple(dict.fromkeys(_missing(verification.checks)))
    own = verification.standing if verification.standing in (PUBLIC, DEMONSTRATION) else INCOMPLETE
    return Standing(FAILED if failed else INCOMPLETE if missing else own, failed, missing)


def rank(standing: Standing) -> int:
    """Return how much a standing is, from the least."""
    return ORDER.index(standing.name)


def require(standings: Mapping[str, Standing], least: str | None = None) -> None:
    """Check that registrations stand on something."""
    needed = ORDER.index(least) if least else ORDER.index(INCOMPLETE)
    less = {name: one for name, one in standings.items() if rank(one) < needed}
    if less:
        expected = " or ".join(ORDER[needed:]) if least else "a registration of which no step fails"
        problem = f"stands on less than {least}" if least else "does not verify"
        raise VerificationError(
            f"registration {', '.join(less)} {problem}",
            expected=expected,
            found="; ".join(f"{name}: {one}" for name, one in less.items()),
            remedy=f"toolkit verify-prereg {' '.join(less)}",
        )


def _missing(checks: tuple[Check, ...]) -> Iterator[str]:
    """Yield what is missing, without what follows from a token that is."""
    absent = [check for check in checks if check.outcome == "missing"]
    lacks_token = any(check.step == TOKENS for check in absent)
    for check in absent:
        if not (lacks_token and check.step in _ABOUT_ALL_TOKENS):
            yield check.detail.partition("\n")[0].rstrip(".")


_ABOUT_ALL_TOKENS = (TOKENS + 1, TOKENS + 2)
