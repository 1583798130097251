"""Simulated episodes of two arms: what is assumed, their outcomes, and differences by seed and by task."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from statistics import mean, variance
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.decisions.intervals import Resampler, step_weights
from toolkit.decisions.measure import EPISODES, Tables, in_words, success_at
from toolkit.errors import IncompleteError, UsageError
from toolkit.rules.endpoints import COUNTED_BY_TASK, OVER_TASKS, Endpoint
from toolkit.rules.plan import Plan
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.rules import BINARY, MCNEMAR, SEEDS, Rule
from toolkit.rules.values import Missing
from toolkit.structs import replace

# Means stay within their range for effects four standard deviations from theirs.
REACH = 4
# Of scores and amounts two are enough: what is cut off beyond moves a mean by a hundredth of the spread.
# Tasks may then be left alike, on which the differences of scores do not depend.
LEAST_REACH = 2
ARMS = FEWEST_SEEDS = 2


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


SUCCESSES = Outcome()


@dataclass(frozen=True)
class Design:
    """A study to be simulated."""

    effect: float  # true mean difference on the rule's estimate, first minus second arm, in its unit
    seed_sd: float  # standard deviation of the seeds' effects
    # Standard deviation of a task's success rate around the step's; what would leave [0, 1] is cut from
    # it, and `task_spread` gives what is left. Of scores a share of their range, of amounts of their
    # mean.
    task_sd: float
    seeds: int  # seed pairs; one is enough for a rule whose intervals are over tasks
    tasks: int | None  # tasks of every evaluation set; None for the registered ones
    simulations: int  # simulated studies
    rng_seed: int  # explicit seed
    resamples: int | None = None  # resamples of the interval; None for the registered number
    variance_ratio: float = 1.0  # how much less arms' differences vary where they share samples; else 1


def simulated_endpoints(book: RuleBook, rule: Rule) -> list[Endpoint]:
    """Return the endpoints that a rule reads, if all can be simulated."""
    if not rule.estimate:
        raise UsageError(f"rule {rule.id} has no estimate, and its power is not defined")
    if rule.estimate in book.statistics:
        raise UsageError(
            f"the power of {rule.id} cannot be simulated: what is assumed is the effect on a difference of "
            "arms, and its estimate is a statistic",
            found=f"{rule.estimate} = {book.statistics[rule.estimate].formula}",
        )
    names = book.names_of(rule) | {rule.estimate}
    endpoints = _read(book, names)
    if len(_contrasts(endpoints)) > 1 or len(_kinds(book, endpoints)) > 1:
        endpoints = _read(replace(book, families={}), names)
    contrasts = _contrasts(endpoints)
    if len(contrasts) > 1:
        raise UsageError(
            f"the power of {rule.id} cannot be simulated: one effect cannot speak for several contrasts",
            found="; ".join(f"{c} {' minus '.join(arms)} ({scale})" for c, arms, scale in contrasts),
        )
    for endpoint in (e for e in endpoints if e.attributes):
        raise UsageError(
            f"the power of {rule.id} cannot be simulated: it reads some tasks of a set alone",
            expected="endpoints on all tasks of an evaluation set",
            found=f"{endpoint.id}, on tasks with {', '.join(in_words(endpoint))}",
        )
    for endpoint in endpoints:
        simple = endpoint.by == "seed" and endpoint.register == "evaluations" and outcome_of(book, endpoint)
        if not simple or len(endpoint.arms) != ARMS or not endpoint.tasks or endpoint.threshold is not None:
            raise UsageError(
                f"the power of {rule.id} cannot be simulated: it is for differences in means of episodes",
                expected="differences of two arms by seed, in successes, scores or amounts of "
                "evaluation sets of registered size",
                found=f"{endpoint.id}: {endpoint.title}",
            )
    if len(kinds := _kinds(book, endpoints)) > 1:
        raise UsageError(
            f"the power of {rule.id} cannot be simulated: one effect cannot speak for several outcomes",
            found=" and ".join(kinds),
        )
    return endpoints


def _read(book: RuleBook, names: Collection[str]) -> list[Endpoint]:
    read = book.read_by(names)
    return [endpoint for name, endpoint in book.endpoints.items() if name in read]


def _contrasts(endpoints: Sequence[Endpoint]) -> set[tuple[str, tuple[str, ...], str]]:
    return {(endpoint.condition, endpoint.arms, endpoint.scale_rewards) for endpoint in endpoints}


def _kinds(book: RuleBook, endpoints: Sequence[Endpoint]) -> dict[str, None]:
    outcomes = [outcome_of(book, endpoint) for endpoint in endpoints]
    return dict.fromkeys("successes" if o.is_success else o.name for o in outcomes if o)


def left_out(book: RuleBook, rule: Rule) -> dict[str, tuple[str, ...]]:
    """Return the tests of a rule's families that are not simulated: of other contrasts or outcomes."""
    there = {endpoint.id for endpoint in simulated_endpoints(book, rule)}
    read = book.read_by(book.names_of(rule))
    return {
        family.id: others
        for family in book.families.values()
        if read & set(family.tests)
        and (others := tuple(name for name in family.tests if book.tests[name].endpoint not in there))
    }


def check_seeds(book: RuleBook, rule: Rule, seeds: int) -> None:
    """Check that a rule's intervals and tests can be made with so many seeds; over tasks one is enough."""
    named = (book.names_of(rule) | {rule.interval}) & set(book.intervals)
    tests = [book.tests[name] for name in sorted(book.read_by(book.names_of(rule)) & set(book.tests))]
    spread = [f"{n}: {m}" for n in sorted(named) if (m := book.intervals[n].method) not in OVER_TASKS]
    spread += [f"{test.id}: {test.method} over seeds" for test in tests if test.over == SEEDS]
    if seeds < FEWEST_SEEDS and (spread or not (named or tests)):
        raise UsageError(
            f"expected two seeds: {rule.id} cannot be simulated with {seeds}",
            expected=f"two seeds; or, with one, intervals by {' or '.join(OVER_TASKS)}, and tests over tasks",
            found=", ".join(spread) or "no interval, and no test over tasks",
        )
    if seeds > 1 and takes_one_seed(book, rule):
        raise UsageError(
            f"expected one seed: {rule.id} cannot be simulated with {seeds}",
            expected="one seed, and --tasks for another size",
            found=", ".join(f"{test.id}: {test.method}" for test in tests if test.method == MCNEMAR),
        )


def takes_one_seed(book: RuleBook, rule: Rule) -> bool:
    """Return whether a rule is for a single seed: McNemar's test pairs the outcomes of two runs."""
    read = book.read_by(book.names_of(rule))
    return any(test.method == MCNEMAR for name, test in book.tests.items() if name in read)


def fitted_outcome(
    book: RuleBook, registers: Tables, rule: Rule, variance_ratio: float | None, episode_sd: float | None
) -> Outcome:
    """Return what an episode of a rule's estimate comes to, as wide as given or as recorded."""
    endpoint = book.endpoints[rule.estimate]
    outcome = outcome_of(book, endpoint) or SUCCESSES
    if outcome.is_success:
        if episode_sd is not None:
            raise UsageError("successes have no spread of their own", remedy="leave out --episode-sd")
        return outcome
    if (variance_ratio or 1) > 1:
        raise UsageError(
            f"a variance ratio is for successes, and {rule.estimate} is of {outcome.name}",
            remedy="--episode-sd NUMBER, smaller by the ratio's root",
        )
    if episode_sd is not None:
        return replace(outcome, sd=episode_sd, source="given")
    return as_recorded(book, registers, endpoint, outcome, trained_share(endpoint, power=2))


def shares_samples(book: RuleBook, endpoints: list[Endpoint]) -> bool:
    """Return whether the runs that endpoints compare were registered to share their samples."""
    return any(
        cell.settings.sampling == "shared" and cell.holds(e.condition, e.scale_rewards, arm, seed)
        for cell in book.plan.cells
        for e in endpoints
        for arm in e.arms
        for seed in cell.seeds
    )


def draw_counts(
    rng: np.random.Generator,
    endpoint: Endpoint,
    success: Sequence[float],
    gaps: NDArray[np.float64],
    *,
    tasks: int,
    task_sd: float,
    variance_ratio: float = 1.0,
    outcome: Outcome = SUCCESSES,
) -> NDArray[Any]:
    """What the episodes add up to, shape (studies, seeds, arms, steps, tasks); successes as integers."""
    base = np.asarray(success)
    trained = np.array(trained_steps(endpoint))
    half = task_sd * 3**0.5
    around = rng.uniform(-half, half, (len(gaps), 1, 1, 1, tasks))
    arms = np.array([1.0, 0.0])[:, None, None]
    lift = gaps[:, :, None, None, None] * arms * trained[:, None]
    rates = np.clip(base[:, None] + around + lift, outcome.low, outcome.high)
    drawn: NDArray[Any]
    if not outcome.is_success:
        drawn = draw_sums(rng, outcome, endpoint.schedules, rates)
    elif variance_ratio == 1:
        drawn = rng.binomial(endpoint.schedules, rates)
    else:
        drawn = _coupled_counts(rng, endpoint.schedules, rates, 1 - 1 / variance_ratio)
    drawn[:, :, 0, ~trained] = drawn[:, :, 1, ~trained]
    return drawn


def _coupled_counts(
    rng: np.random.Generator, episodes: int, rates: NDArray[np.float64], share: float
) -> NDArray[np.int64]:
    """Return binomial successes of two arms that decide a share of their episodes by the same numbers.

    An episode that is decided so is a success of the arm with the higher rate wherever it is one of the
    other. Arms of one rate then differ by the other episodes alone, and the variance of their difference is
    1 - share of what it is without. A gap makes up for some of that: what differs by the gap, varies.
    """
    low, high = rates.min(axis=2), rates.max(axis=2)
    common = rng.binomial(episodes, share, low.shape)
    of_both = rng.binomial(common, low)
    room = np.where(low < 1, 1 - low, 1.0)
    of_one = rng.binomial(common - of_both, (high - low) / room)
    counts: NDArray[np.int64] = rng.binomial((episodes - common)[:, :, None], rates)
    counts += of_both[:, :, None] + of_one[:, :, None] * (rates > low[:, :, None])
    return counts


def task_spread(
    success: Sequence[float], design: Design, share: float, outcome: Outcome = SUCCESSES
) -> float:
    """Return the standard deviation of the tasks' means that keeps them all within the outcome's range."""
    room, least = (
        min(
            min(success) + min(0.0, design.effect - reach * design.seed_sd) / share - outcome.low,
            outcome.high - max(success) - max(0.0, design.effect + reach * design.seed_sd) / share,
        )
        for reach in (REACH, REACH if outcome.is_success else LEAST_REACH)
    )
    if least < 0:
        what = "success rates" if outcome.is_success else f"means of {outcome.name}"
        raise UsageError(
            f"with this effect and this spread of the seeds {what} would leave "
            f"[{outcome.low:g}, {outcome.high:g}]",
            expected=f"an effect within reach of {what} of {min(success):.3f} to {max(success):.3f}",
            found=f"effect {design.effect:g}, seed sd {design.seed_sd:.4f}",
        )
    return float(min(design.task_sd * outcome.scale(success), max(room, 0.0) / 3**0.5))


def integer_weights(endpoint: Endpoint) -> tuple[list[int], int]:
    """Return the weights of an endpoint's steps as whole numbers, and what they are multiplied by."""
    weights = weights_of(endpoint)
    scale = lcm(*(weight.denominator for weight in weights))
    return [int(weight * scale) for weight in weights], scale


def by_seed(endpoint: Endpoint, counts: NDArray[Any], design: Design) -> tuple[Fraction, ...]:
    """Return the exact difference of each seed."""
    episodes = (design.tasks or endpoint.tasks) * endpoint.schedules
    whole, scale = integer_weights(endpoint)
    differences = (counts[:, 0] - counts[:, 1]).sum(axis=-1).tolist()
    # Counts are added up as whole numbers: a thousand studies have a hundred thousand of them.
    sums = (
        sum(w * (n if isinstance(n, int) else Fraction(n)) for w, n in zip(whole, by_step, strict=True))
        for by_step in differences
    )
    return tuple(Fraction(total, scale * episodes) for total in sums)


def by_task(endpoint: Endpoint, counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the difference of each seed on each task, shape (seeds, tasks)."""
    weights = np.array([float(w) for w in weights_of(endpoint)])
    table: NDArray[np.float64] = np.einsum(
        "k,skt->st", weights, (counts[:, 0] - counts[:, 1]) / endpoint.schedules
    )
    return table


def weights_of(endpoint: Endpoint) -> tuple[Fraction, ...]:
    """Return the weight of each step that an endpoint reads; one that names no step has a single one."""
    return step_weights(endpoint) or (Fraction(1),)


def trained_share(endpoint: Endpoint, power: int = 1) -> float:
    """Return how much of a gap that opens with training an endpoint sees: 0.9 of an area from step 0."""
    weighted = zip(weights_of(endpoint), trained_steps(endpoint), strict=True)
    return float(sum(weight**power for weight, is_trained in weighted if is_trained))


def trained_steps(endpoint: Endpoint) -> tuple[bool, ...]:
    """Return at which of its steps an endpoint sees a gap: after step 0, where there is any other."""
    steps = steps_of(endpoint)
    return tuple(step > 0 or not any(steps) for step in steps)


def steps_of(endpoint: Endpoint) -> tuple[int, ...]:
    """Return the steps that an endpoint reads."""
    # An evaluation without a step is the final one.
    return endpoint.steps or (1,)


def second_arm(plan: Plan, registers: Tables, endpoint: Endpoint) -> tuple[float, ...]:
    """Return the mean outcome of the second arm over seeds at each step."""
    runs = plan.deciding_runs(endpoint, registers.rows("runs"))
    rows = registers.rows(endpoint.register)
    chosen = [run for (arm, _), run in runs.items() if arm == endpoint.arms[1]]
    means = []
    for step in steps_of(endpoint):
        values = [
            run if isinstance(run, Missing) else success_at(endpoint, rows, run, step) for run in chosen
        ]
        absent = [value for value in values if isinstance(value, Missing)]
        if absent:
            raise IncompleteError(
                f"{endpoint.id} cannot be fitted in study {registers.name!r}", found=absent[0].reasons[0]
            )
        present = [float(value) for value in values if not isinstance(value, Missing)]
        means.append(sum(present) / len(present))
    return tuple(means)


def outcome_of(book: RuleBook, endpoint: Endpoint) -> Outcome | None:
    """Return what an endpoint's episodes come to; None where it is no mean of episodes."""
    measured = endpoint.outcome
    counted = measured.columns[0]
    if not measured.is_rate or counted not in COUNTED_BY_TASK:
        return None
    if counted in BINARY:
        return Outcome(counted)
    if measured.of != EPISODES:
        return None
    if counted == SCORE:
        scores = book.terms.scores
        return Outcome(SCORE, float(scores[0]), float(scores[1])) if scores else None
    return Outcome(counted, 0.0, math.inf)


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
