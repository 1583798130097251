"""What an episode comes to in a simulated study: a success, a score in a range, or an amount."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, variance
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from toolkit.decisions.intervals import Resampler
from toolkit.decisions.measure import EPISODES, Tables
from toolkit.errors import IncompleteError
from toolkit.rules.endpoints import COUNTED_BY_TASK, Endpoint, Rate
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.rules import BINARY
from toolkit.rules.values import Missing

if TYPE_CHECKING:
    import numpy as np

SCORE = "score"
# A Beta as wide as this is taken for its limit, which has the two ends alone.
WIDEST = 1 - 1e-6
FEWEST_TASKS = 2


@dataclass(frozen=True)
class Outcome:
    """What an endpoint's episodes come to."""

    name: str = BINARY[0]  # `successes`, `score`, or a sum of `evaluations`
    # low, high: the least and the most that an episode can come to; an amount has no end above
    low: float = 0.0
    high: float = 1.0
    # Standard deviation of an episode around its task's mean, in its unit; of successes that follows from
    # their rate
    sd: float = 0.0
    source: str = ""  # where that is from

    @property
    def is_success(self) -> bool:
        """Whether an episode has it or not."""
        return self.name in BINARY

    @property
    def in_words(self) -> str:
        """What is assumed of an episode, in words."""
        if self.is_success:
            return "successes are binomial at their task's rate"
        if self.name == SCORE:
            drawn = f"a score is a Beta draw on its range, {self.low:g} to {self.high:g}, or one of the ends,"
        else:
            drawn = f"{self.name} of an episode are a gamma draw"
        return f"{drawn} around its task's mean with sd {self.sd:.4g} ({self.source})"

    def scale(self, levels: Sequence[float]) -> float:
        """Return what a task's spread is a share of: the range, or of an amount the smallest mean."""
        return self.high - self.low if math.isfinite(self.high) else min(levels)


def outcome_of(book: RuleBook, endpoint: Endpoint) -> Outcome | None:
    """Return what an endpoint's episodes come to; None where it is no mean of episodes."""
    measured = endpoint.outcome
    if not isinstance(measured, Rate) or measured.count not in COUNTED_BY_TASK:
        return None
    if measured.count in BINARY:
        return Outcome(measured.count)
    if measured.of != EPISODES:
        return None
    if measured.count == SCORE:
        scores = book.terms.scores
        return Outcome(SCORE, float(scores[0]), float(scores[1])) if scores else None
    return Outcome(measured.count, 0.0, math.inf)


def draw_sums(
    rng: np.random.Generator, outcome: Outcome, episodes: int, levels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what the episodes of each task add up to."""
    if outcome.sd == 0:
        return levels * episodes
    if outcome.name == SCORE:
        width = outcome.high - outcome.low
        drawn = _beta_sums(rng, episodes, (levels - outcome.low) / width, outcome.sd / width)
        return outcome.low * episodes + width * drawn
    shape = (levels / outcome.sd) ** 2 * episodes
    scale = outcome.sd**2 / levels.clip(min=1e-300)
    sums: NDArray[np.float64] = rng.gamma(shape, scale)
    return sums


def _beta_sums(
    rng: np.random.Generator, episodes: int, means: NDArray[np.float64], sd: float
) -> NDArray[np.float64]:
    """Return sums of Beta draws in [0, 1] with given means; of its ends where the Beta would be wider."""
    import numpy as np

    most = means * (1 - means)
    is_beta = sd**2 < most * WIDEST
    strength = np.where(is_beta, most / sd**2 - 1, 1.0)
    inner = np.where(is_beta, means, 0.5)
    sums = np.zeros_like(means)
    for _ in range(episodes):
        beta = rng.beta(inner * strength, (1 - inner) * strength)
        sums += beta if is_beta.all() else np.where(is_beta, beta, rng.random(means.shape) < means)
    return sums


def as_recorded(
    book: RuleBook, registers: Tables, endpoint: Endpoint, outcome: Outcome, squares: float
) -> Outcome:
    """Return an outcome so wide that tasks' differences spread as the recorded ones."""
    found: Any = Missing(not_run=False, reasons=("no episode rows",))
    if registers.has(EPISODES):
        found = Resampler(registers, book.plan).differences(endpoint)
    if not isinstance(found, Missing) and len(found[0][0]) >= FEWEST_TASKS:
        table, denominator = found
        of_tasks = mean(variance([value / denominator for value in row]) for row in table)
        sd = float(of_tasks * endpoint.schedules / (2 * squares)) ** 0.5
        return replace(outcome, sd=sd, source="so that tasks' differences spread as recorded")
    if not math.isfinite(outcome.high):
        raise IncompleteError(
            f"how much {outcome.name} of an episode vary is not known",
            expected="episode rows of two tasks or more",
            found=found.reasons[0] if isinstance(found, Missing) else "a single task",
            where=f"study {registers.name}, {endpoint.id}",
            remedy="--episode-sd NUMBER",
        )
    widest = (outcome.high - outcome.low) / 2
    return replace(outcome, sd=widest, source="half the range, the most there is: no episodes to fit it to")
