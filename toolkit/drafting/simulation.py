"""Simulated episodes of two arms: what is assumed, their outcomes, and differences by seed and by task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from toolkit.decisions.intervals import step_weights
from toolkit.decisions.measure import Tables, in_words, success_at
from toolkit.drafting.outcomes import Outcome, as_recorded, draw_sums, outcome_of
from toolkit.errors import IncompleteError, UsageError
from toolkit.rules.endpoints import OVER_TASKS, Endpoint
from toolkit.rules.plan import Plan
from toolkit.rules.rulebook import RuleBook
from toolkit.rules.rules import MCNEMAR, SEEDS, Rule
from toolkit.rules.values import Missing

if TYPE_CHECKING:
    import numpy as np

# Means stay within their range for effects four standard deviations from theirs.
REACH = 4
# Of scores and amounts two are enough: what is cut off beyond moves a mean by a hundredth of the spread.
# Tasks may then be left alike, on which the differences of scores do not depend.
LEAST_REACH = 2
ARMS = FEWEST_SEEDS = 2
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
    # How many times less the episodes of two arms alike make their difference vary than samples of each
    # arm's own would; above 1 where the arms share their samples
    variance_ratio: float = 1.0


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
    chosen = book.read_by(book.names_of(rule) | {rule.estimate})
    endpoints = [endpoint for name, endpoint in book.endpoints.items() if name in chosen]
    contrasts = {(endpoint.condition, endpoint.arms, endpoint.scale_rewards) for endpoint in endpoints}
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
    outcomes = [outcome_of(book, endpoint) for endpoint in endpoints]
    kinds = dict.fromkeys("successes" if o.is_success else o.name for o in outcomes if o)
    if len(kinds) > 1:
        raise UsageError(
            f"the power of {rule.id} cannot be simulated: one effect cannot speak for several outcomes",
            found=" and ".join(kinds),
        )
    return endpoints


def check_seeds(book: RuleBook, rule: Rule, seeds: int) -> None:
    """Check that a rule's intervals and tests can be made with so many seeds.

    Those over tasks can with a single one, and McNemar's test can with no more.
    """
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
    weighted = zip(weights_of(endpoint), trained_steps(endpoint), strict=True)
    squares = float(sum(weight**2 for weight, is_trained in weighted if is_trained))
    return as_recorded(book, registers, endpoint, outcome, squares)


def shares_samples(book: RuleBook, endpoints: list[Endpoint]) -> bool:
    """Return whether the runs that endpoints compare were registered to share their samples."""
    return any(
        cell.settings.get("sampling") == "shared" and cell.holds(e.condition, e.scale_rewards, arm, seed)
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
    import numpy as np

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
    import numpy as np

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


def by_seed(endpoint: Endpoint, counts: NDArray[Any], design: Design) -> tuple[Fraction, ...]:
    """Return the exact difference of each seed."""
    episodes = (design.tasks or endpoint.tasks) * endpoint.schedules
    weights = weights_of(endpoint)
    scale = lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * scale) for weight in weights]
    differences = (counts[:, 0] - counts[:, 1]).sum(axis=-1).tolist()
    # Counts are added up as whole numbers: a thousand studies have a hundred thousand of them.
    sums = (
        sum(w * (n if isinstance(n, int) else Fraction(n)) for w, n in zip(whole, by_step, strict=True))
        for by_step in differences
    )
    return tuple(Fraction(total, scale * episodes) for total in sums)


def by_task(endpoint: Endpoint, counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the difference of each seed on each task, shape (seeds, tasks)."""
    import numpy as np

    weights = np.array([float(w) for w in weights_of(endpoint)])
    table: NDArray[np.float64] = np.einsum(
        "k,skt->st", weights, (counts[:, 0] - counts[:, 1]) / endpoint.schedules
    )
    return table


def whole_by_task(endpoint: Endpoint, counts: NDArray[Any]) -> list[list[int]] | list[list[float]]:
    """Return the same over a common denominator: of counts, as whole numbers."""
    import numpy as np

    weights = weights_of(endpoint)
    scale = lcm(*(weight.denominator for weight in weights))
    whole = np.array([int(weight * scale) for weight in weights])
    table: list[list[int]] | list[list[float]] = np.einsum(
        "k,skt->st", whole, counts[:, 0] - counts[:, 1]
    ).tolist()
    return table


def weights_of(endpoint: Endpoint) -> tuple[Fraction, ...]:
    """Return the weight of each step that an endpoint reads; one that names no step has a single one."""
    return step_weights(endpoint) or (Fraction(1),)


def trained_share(endpoint: Endpoint) -> float:
    """Return how much of a gap that opens with training an endpoint sees: 0.9 of an area from step 0."""
    weighted = zip(weights_of(endpoint), trained_steps(endpoint), strict=True)
    return float(sum(weight for weight, is_trained in weighted if is_trained))


def trained_steps(endpoint: Endpoint) -> tuple[bool, ...]:
    """Return at which of its steps an endpoint sees a gap: after step 0, where there is any other.

    A study that evaluates once and calls that step 0 does not mean the time before training.
    """
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
