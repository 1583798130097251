"""What is registered of episodes without an outcome: what they count as, and how many there may be."""

from dataclasses import dataclass
from fractions import Fraction

TREATMENTS = {
    "failure": "they count as failures, or as the lowest score",
    "excluded": "their tasks are left out, in every run",
    "bounds": "they count as failures, and a verdict stands only if it is the same with all successes",
}
ATTEMPTS = {
    "one": "an episode is there once, or the log is refused",
    "first": "of several attempts the first counts, whatever came of it",
    "last": "of several attempts the last counts",
}


@dataclass(frozen=True)
class MissingData:
    """What becomes of episodes without an outcome: errors, and rows that a log lacks."""

    counts_as: str  # one of `TREATMENTS`
    most: Fraction  # share of an evaluation's episodes that may be missing; with more it has no value
    attempts: str  # one of `ATTEMPTS`

    @property
    def in_words(self) -> str:
        """What is registered, in words."""
        return (
            f"Of episodes without an outcome: {TREATMENTS[self.counts_as]}; at most {float(self.most):.1%} "
            f"of an evaluation; {ATTEMPTS[self.attempts]}."
        )
