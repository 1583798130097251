"""What a registered rule could have seen: the rule itself, on simulated studies.

Steps, whose numbers the code repeats:

1. Fit a study's components: success by step of the second arm, and the spread of the seeds' differences
   beyond what the episodes alone would give.
2. Simulate episodes: a task's success rate varies around the step's; the first arm adds a gap from the first
   trained step on, the same for every task, which varies from seed to seed around the assumed effect. Before
   training both arms are one policy on one set of schedules: they share their episodes. Where the arms share
   their samples, they decide so many of their episodes alike that their difference varies as much less as a
   variance ratio says. Scores and amounts are drawn around their task's mean, as wide as the tasks'
   differences that were recorded.
3. Measure the rule's endpoints on the simulated counts, exactly, and evaluate its registered tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from statistics import variance
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray

from toolkit.decisions import evaluation
from toolkit.decisions.intervals import Draws, interval_by_seed, interval_over_tasks, p_value
from toolkit.decisions.measure import Tables, measure
from toolkit.drafting import simulation
from toolkit.drafting.simulation import Outcome
from toolkit.errors import IncompleteError, UsageError
from toolkit.estimators import chi_square_quantile
from toolkit.rules import rulebook, rules
from toolkit.rules.endpoints import BY_SEED, OVER_TASKS, Endpoint, IntervalSpec
from toolkit.rules.rules import Rule
from toolkit.rules.values import Missing, Series
from toolkit.structs import Document, about, replace

CELLS = 4_000_000  # drawn at once, to bound the memory
BATCH = 16  # studies whose bootstraps are computed at once: more take the memory and no less time
# An interval covers something else than its level says if it is off by more than this, and than chance.
FAR_OFF, CHANCE_ERRORS = 0.02, 3


@dataclass(frozen=True)
class Components:
    """What of a study enters a simulation."""

    success: dict[str, tuple[float, ...]]  # endpoint → mean outcome of the second arm at each of its steps
    observed: tuple[float, ...]  # the seeds' differences on the rule's estimate
    sampling_variance: float  # variance that the episodes alone would give a seed's difference
    seed_sd: float  # standard deviation of the seeds' effects beyond that, at least zero
    variance_ratio: float = 1.0  # how much less the episodes' variance is than with samples of each arm's own
    outcome: Outcome = simulation.SUCCESSES  # what an episode comes to


@dataclass(frozen=True)
class Power:
    """What became of the simulated studies."""

    design: simulation.Design  # what was assumed
    passed: int  # studies that the rule passed
    covered: int | None  # studies whose registered interval held the true effect; None where there is none
    excluded_zero: int | None  # studies whose interval excluded zero
    wrong_sign: int | None  # those of them whose estimate had the wrong sign; None where the effect is zero
    mean_estimate_passed: float | None  # mean estimate of the studies that passed; None where none did
    task_sd: dict[str, float]  # endpoint → standard deviation of the tasks' means that was simulated
    level: float | None = None  # level of the registered interval; None where the rule has none
    assumed: str = ""  # what was assumed of an episode, in words

    @property
    def level_missed(self) -> float:
        """By how much the interval covers more than its level says, or less; 0 where near, or by chance."""
        if self.level is None or self.covered is None:
            return 0.0
        simulations = self.design.simulations
        error = (self.level * (1 - self.level) / simulations) ** 0.5
        off = self.covered / simulations - self.level
        return off if abs(off) > max(FAR_OFF, CHANCE_ERRORS * error) else 0.0

    @property
    def pass_probability(self) -> float:
        """Share of the simulated studies that passed."""
        return self.passed / self.design.simulations

    @property
    def monte_carlo_error(self) -> float:
        """Standard error of the pass probability."""
        p = self.pass_probability
        return float((p * (1 - p) / self.design.simulations) ** 0.5)


def fit(
    book: rulebook.RuleBook,
    registers: Tables,
    rule_id: str,
    *,
    task_sd: float,
    rng_seed: int,
    variance_ratio: float | None = None,
    episode_sd: float | None = None,
) -> Components:
    """Fit the components of a study for a rule; the spread between seeds is none where there is a single one.

    Where the arms share their samples and no ratio is given, the seeds' differences cannot be told from
    those of the samples: all that was observed is taken for the samples', and the ratio is what that gives.
    """
    rule = book.rule(rule_id)
    endpoints = simulation.simulated_endpoints(book, rule)
    success = {e.id: simulation.second_arm(book.plan, registers, e) for e in endpoints}  # 1
    estimate = measure(book.endpoints[rule.estimate], registers, book.plan)
    present = estimate.present() if isinstance(estimate, Series) else Missing(not_run=False, reasons=())
    if isinstance(present, Missing):
        raise IncompleteError(
            f"{rule_id} has no estimate in study {registers.name!r}", found="; ".join(present.reasons)
        )
    observed = tuple(map(float, present))
    simulation.check_seeds(book, rule, len(observed))
    design = simulation.Design(0.0, 0.0, task_sd, len(observed), None, 400, rng_seed)
    outcome = simulation.fitted_outcome(book, registers, rule, variance_ratio, episode_sd)
    alone = Components(success, observed, 0.0, 0.0, 1.0, outcome)
    if len(observed) < simulation.FEWEST_SEEDS:
        sampling = variance([study.estimate for study in studies(book, rule, alone, design)])
        ratio = variance_ratio or 1.0
        return replace(alone, sampling_variance=sampling / ratio, variance_ratio=ratio)
    values = [study.differences for study in studies(book, rule, alone, design)]
    sampling = float(sum(variance([float(v) for v in differences]) for differences in values) / len(values))
    ratio = 1.0
    if outcome.is_success and simulation.shares_samples(book, endpoints):
        spread = variance(observed)
        ratio = variance_ratio or max(1.0, sampling / spread if spread else 1.0)
    extra = max(0.0, variance(observed) - sampling / ratio)
    return replace(alone, sampling_variance=sampling / ratio, seed_sd=extra**0.5, variance_ratio=ratio)


def simulate(
    book: rulebook.RuleBook, rule_id: str, components: Components, design: simulation.Design
) -> Power:
    """Simulate studies and decide each by the registered rule."""
    sensible = 0 <= design.seed_sd < math.inf and 0 <= design.task_sd <= 1
    if min(design.seeds, design.simulations) < 1 or not sensible:
        raise UsageError(
            "expected a seed, a simulation, and spreads in range: of tasks 0 to 1, others 0 or more",
            found=design,
        )
    if not 1 <= design.variance_ratio < math.inf:
        raise UsageError("a variance ratio is 1 or more", found=design.variance_ratio)
    if not math.isfinite(design.effect):
        raise UsageError("an effect is a number", found=design.effect)
    rule = book.rule(rule_id)
    simulation.check_seeds(book, rule, design.seeds)
    passed = covered = excluded = wrong = 0
    estimates: list[float] = []
    for study in _bootstrapped(studies(book, rule, components, design), rule.interval):  # 2
        if study.passes(rule):  # 3
            passed += 1
            estimates.append(study.estimate)
        if study.interval is not None:
            low, high = study.interval
            covered += low <= design.effect <= high
            if low > 0 or high < 0:
                excluded += 1
                wrong += study.estimate * design.effect < 0
    has_interval = bool(rule.interval)
    return Power(
        design,
        passed,
        covered if has_interval else None,
        excluded if has_interval else None,
        wrong if has_interval and design.effect else None,
        sum(estimates) / len(estimates) if estimates else None,
        _task_spreads(book, rule, components, design),
        float(book.intervals[rule.interval].level) if has_interval else None,
        "; ".join([components.outcome.in_words, *_alone(book, rule)]),
    )


def _alone(book: rulebook.RuleBook, rule: rules.Rule) -> Iterator[str]:
    for family, others in simulation.left_out(book, rule).items():
        yield f"{', '.join(others)} of {family} find nothing, which leaves this test the lowest level"


@dataclass(frozen=True)
class _Simulated:
    """One simulated study: values of the endpoints by seed, and counts by task for intervals and tests."""

    book: rulebook.RuleBook
    series: dict[str, tuple[Fraction, ...]]
    counts: dict[str, NDArray[Any]]
    primary: str
    design: simulation.Design
    weights: dict[tuple[int, int], Any]
    drawn: Draws
    interval_id: str
    ends: dict[str, tuple[float, float] | Missing] = field(default_factory=dict)

    @property
    def differences(self) -> tuple[Fraction, ...]:
        """The seeds' differences on the rule's estimate."""
        return self.series[self.primary]

    @property
    def estimate(self) -> float:
        """The mean difference."""
        return float(sum(self.differences, Fraction(0)) / len(self.differences))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The rule's registered interval; None where it has none."""
        ends = self._ends(self.interval_id) if self.interval_id else None
        return None if isinstance(ends, Missing) else ends

    def passes(self, rule: rules.Rule) -> bool:
        """Whether the binding tests of a rule hold."""
        binding = (criterion.expression for criterion in rule.read_as(rule.binding))
        return all(evaluation.evaluate(expression, self._resolve) is True for expression in binding)

    def _resolve(self, role: str, name: str) -> Any:
        if role == "passes":
            return self.passes(self.book.rules[name])
        if role == "value":
            return self._value(name)
        if role in ("p", "adjusted"):
            return self._p_value(role, name)
        ends = self._ends(name)
        return ends if isinstance(ends, Missing) else Fraction(ends[role == "upper"])

    def _p_value(self, role: str, name: str) -> Any:
        """Return a p-value; adjusted as if tests that are not simulated found nothing."""
        tests = self.book.adjusted_with(name)
        if all(self.book.tests[test].endpoint in self.series for test in tests):
            made = p_value(name, self.book, self._value, self._by_task)
            return made.p if role == "p" else made.adjusted
        own = p_value(name, replace(self.book, families={}), self._value, self._by_task).p
        return own if role == "p" or isinstance(own, Missing) else min(Fraction(1), own * len(tests))

    def _value(self, name: str) -> Any:
        if name in self.book.statistics:
            return evaluation.evaluate(self.book.statistics[name].expression, self._resolve)
        return Series("seed", tuple((str(s), value) for s, value in enumerate(self.series[name])))

    def _by_task(self, endpoint: Endpoint) -> list[list[int]] | list[list[float]]:
        """Return the differences over a common denominator: of counts, as whole numbers."""
        counts, (whole, _) = self.counts[endpoint.id], simulation.integer_weights(endpoint)
        table = np.einsum("k,skt->st", np.array(whole), counts[:, 0] - counts[:, 1])
        return cast("list[list[int]] | list[list[float]]", table.tolist())

    def registered(self, interval: str) -> IntervalSpec:
        """Return an interval as it is registered, but for what the design says of its resamples."""
        spec, design = self.book.intervals[interval], self.design
        return replace(spec, resamples=design.resamples or spec.resamples, rng_seed=design.rng_seed)

    def table(self, interval: str) -> NDArray[np.float64]:
        """Return the differences that an interval is over, by seed and task."""
        endpoint = self.book.intervals[interval].endpoint
        return simulation.by_task(self.book.endpoints[endpoint], self.counts[endpoint])

    def _ends(self, name: str) -> tuple[float, float] | Missing:
        if name not in self.ends:
            spec = self.registered(name)
            if spec.method in BY_SEED:
                interval = interval_by_seed(spec, self.book, self._value)
            elif spec.method in OVER_TASKS:
                interval = interval_over_tasks(spec, self.table(name).tolist(), 1, self.drawn)
            else:
                _bootstrap([self], name)
                return self.ends[name]
            made = interval if isinstance(interval, Missing) else (float(interval.low), float(interval.high))
            self.ends[name] = made
        return self.ends[name]


def _bootstrapped(found: Iterator[_Simulated], interval: str) -> Iterator[_Simulated]:
    """Yield studies of one design, with their bootstrapped interval where they have one."""
    while batch := list(islice(found, BATCH)):
        if interval and batch[0].registered(interval).method not in {*BY_SEED, *OVER_TASKS}:
            _bootstrap(batch, interval)
        yield from batch


def _bootstrap(batch: Sequence[_Simulated], name: str) -> None:
    """Bootstrap an interval of many studies at once: a product of large matrices costs less than many."""
    from toolkit.estimators import crossed_bootstraps, draw_weights, nested_bootstrap

    spec, tables = batch[0].registered(name), [study.table(name) for study in batch]
    level, weights, key = float(spec.level), batch[0].weights, (tables[0].shape[1], spec.resamples)
    if spec.crossing == "nested":
        made = tuple(nested_bootstrap(table, spec.resamples, spec.rng_seed, level) for table in tables)
    else:
        if key not in weights:
            weights[key] = draw_weights(len(tables[0]), *key, spec.rng_seed)
        made = crossed_bootstraps(tables, weights[key], level)
    for study, interval in zip(batch, made, strict=True):
        study.ends[name] = (interval.low, interval.high)


def studies(
    book: rulebook.RuleBook, rule: rules.Rule, components: Components, design: simulation.Design
) -> Iterator[_Simulated]:
    """Yield the simulated studies of a design."""
    rng = np.random.default_rng(design.rng_seed)
    endpoints = simulation.simulated_endpoints(book, rule)
    for e in endpoints:
        fitted, registered = len(components.success[e.id]), len(simulation.steps_of(e))
        if fitted != registered:
            raise UsageError(
                f"{e.id} was fitted to other steps than it is registered at",
                expected=f"{registered} steps",
                found=f"{fitted}",
            )
    share = simulation.trained_share(book.endpoints[rule.estimate])
    spread = _task_spreads(book, rule, components, design)
    cells = max(
        simulation.ARMS * design.seeds * len(simulation.steps_of(e)) * (design.tasks or e.tasks)
        for e in endpoints
    )
    weights: dict[tuple[int, int], Any] = {}
    drawn: Draws = {}
    left = design.simulations
    while left:
        size = min(left, max(1, CELLS // cells))
        left -= size
        gaps = (design.effect + design.seed_sd * rng.standard_normal((size, design.seeds))) / share
        tables = {
            e.id: simulation.draw_counts(
                rng,
                e,
                components.success[e.id],
                gaps,
                tasks=design.tasks or e.tasks,
                task_sd=spread[e.id],
                variance_ratio=design.variance_ratio,
                outcome=components.outcome,
            )
            for e in endpoints
        }
        for number in range(size):
            yield _Simulated(
                book,
                {e.id: simulation.by_seed(e, tables[e.id][number], design) for e in endpoints},
                {e.id: tables[e.id][number] for e in endpoints},
                rule.estimate,
                design,
                weights,
                drawn,
                rule.interval,
            )


def _task_spreads(
    book: rulebook.RuleBook, rule: rules.Rule, components: Components, design: simulation.Design
) -> dict[str, float]:
    share = simulation.trained_share(book.endpoints[rule.estimate])
    return {
        e.id: simulation.task_spread(components.success[e.id], design, share, components.outcome)
        for e in simulation.simulated_endpoints(book, rule)
    }


CLEARLY = 3  # Monte Carlo errors of a difference
LABEL = "simulated: it changes no verdict"


def spread_range(observed: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95% range of the standard deviation of normal differences; None for a single seed."""
    degrees = len(observed) - 1
    if not degrees:
        return None
    squares = degrees * variance(observed)
    low, high = (chi_square_quantile(p, degrees) for p in (0.975, 0.025))
    return math.sqrt(squares / low), math.sqrt(squares / high)


def needed(results: list[Power], effect: float, target: float) -> int | None:
    """Return the fewest of the simulated numbers of seeds with which the rule reaches the target power."""
    enough = [p.design.seeds for p in results if p.design.effect == effect and p.pass_probability >= target]
    return min(enough, default=None)


def warnings(rule: Rule, results: list[Power]) -> list[str]:
    """Say where a rule's interval covers clearly more or less than its level says."""
    said = []
    for words, sign in (("wider than it says, and misses effects", 1), ("narrower than it says", -1)):
        there = [p for p in results if p.level_missed * sign > 0]
        if not there:
            continue
        cells = ", ".join(
            f"{p.level_missed + (p.level or 0):.1%} with {_seeds(p.design.seeds)} at {p.design.effect:+.3f}"
            for p in there
        )
        said.append(
            f"{rule.interval} is {words}: it covers the true effect in {cells}, and says "
            f"{there[0].level:.0%}; `toolkit explain --language` says what each method assumes"
        )
    return said


def _seeds(number: int) -> str:
    return f"{number} seeds" if number > 1 else "1 seed"


def harder(results: list[Power], effect: float) -> bool:
    """Return whether the rule passes clearly less often with the most seeds than with the fewest."""
    simulated = sorted((p for p in results if p.design.effect == effect), key=lambda p: p.design.seeds)
    few, many = simulated[0], simulated[-1]
    clearly = CLEARLY * math.hypot(few.monte_carlo_error, many.monte_carlo_error)
    return many.pass_probability < few.pass_probability - clearly


class Fitted(Document, frozen=True):
    """What was fitted to a study, in the estimate's unit."""

    observed: Annotated[tuple[float, ...], about("The seeds' differences.")]
    sampling_sd: Annotated[
        float, about("Standard deviation that the episodes alone would give a difference.")
    ]
    observed_sd_range: Annotated[
        tuple[float, float] | None,
        about("95% range of the seeds' standard deviation; null for a single seed."),
    ]
    seed_sd: Annotated[float, about("Standard deviation of the seeds' effects beyond the episodes'.")]
    variance_ratio: Annotated[float, about("How many times less a difference varies by shared samples.")]
    success: Annotated[
        dict[str, tuple[float, ...]], about("The second arm's mean outcome at each step, by endpoint.")
    ]


class Assumed(Document, frozen=True):
    """What was assumed of simulated studies."""

    model: Annotated[str, about("Of an episode, in words.")]
    episode_sd: Annotated[
        float | None, about("Of an episode's score or amount; null where it succeeds or fails.")
    ]
    seed_sd: Annotated[float, about("Standard deviation of the seeds' effects.")]
    task_sd_at_most: Annotated[float, about("Of scores a share of their range, of amounts of their mean.")]
    tasks: Annotated[int | None, about("Of each set; null for the registered number.")]
    variance_ratio: Annotated[float, about("How many times less a difference varies by shared samples.")]
    simulations: Annotated[int, about("For each effect and number of seeds.")]
    rng_seed: Annotated[int, about("Seed of the simulations.")]


class SimulatedStudies(Document, frozen=True):
    """What became of the simulated studies with one effect and number of seeds."""

    effect: Annotated[float, about("True mean difference, in the estimate's unit.")]
    seeds: Annotated[int, about("Seed pairs.")]
    pass_probability: Annotated[float, about("Share that the rule passed.")]
    monte_carlo_error: Annotated[float, about("Standard error of that.")]
    coverage: Annotated[
        float | None, about("Share whose registered interval held the true effect; null without an interval.")
    ]
    excludes_zero: Annotated[float | None, about("Share whose interval excluded zero.")]
    type_s: Annotated[
        float | None,
        about("Share of these whose estimate had the wrong sign; null where the effect is zero."),
    ]
    mean_estimate_passed: Annotated[float | None, about("Of those that passed; null where none did.")]
    task_sd: Annotated[dict[str, float], about("Standard deviation of the tasks' means, by endpoint.")]


class SimulatedPower(Document, frozen=True):
    """How often a registered rule would pass; simulated, it changes no verdict."""

    rule: Annotated[str, about("Name of the rule.")]
    study: Annotated[str, about("That was fitted.")]
    label: Annotated[str, about("That it changes no verdict, in words.")]
    fitted: Fitted
    assumed: Assumed
    results: list[SimulatedStudies]
    warnings: Annotated[list[str], about("Intervals that cover clearly more or less than their level says.")]
    target: Annotated[float, about("Power to be reached.")]
    seeds_needed: Annotated[
        dict[str, int | None],
        about("Fewest of the simulated seeds that reach it, by effect; null: none does."),
    ]


def power_document(
    rule: Rule, study: str, components: Components, results: list[Power], target: float
) -> SimulatedPower:
    """Return simulated studies as JSON values."""
    effects = list(dict.fromkeys(p.design.effect for p in results))
    first = results[0]
    return SimulatedPower(
        rule.id,
        study,
        LABEL,
        Fitted(
            components.observed,
            components.sampling_variance**0.5,
            spread_range(components.observed),
            components.seed_sd,
            components.variance_ratio,
            components.success,
        ),
        Assumed(
            first.assumed,
            None if components.outcome.is_success else components.outcome.sd,
            first.design.seed_sd,
            first.design.task_sd,
            first.design.tasks,
            first.design.variance_ratio,
            first.design.simulations,
            first.design.rng_seed,
        ),
        [
            SimulatedStudies(
                p.design.effect,
                p.design.seeds,
                p.pass_probability,
                p.monte_carlo_error,
                share(p.covered, p.design.simulations),
                share(p.excluded_zero, p.design.simulations),
                share(p.wrong_sign, p.excluded_zero),
                p.mean_estimate_passed,
                p.task_sd,
            )
            for p in results
        ],
        warnings(rule, results),
        target,
        {str(effect): needed(results, effect, target) for effect in effects},
    )


def share(count: int | None, of: int | None) -> float | None:
    """Return a share; None where either number is."""
    return count / of if count is not None and of else None
