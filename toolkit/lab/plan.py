"""The plan of a language model's training before any of it is done: runs, tokens, time, what is not known."""

from __future__ import annotations

import heapq
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from toolkit import files
from toolkit.errors import DamagedError, UsageError
from toolkit.lab.evaluation import diagnostic
from toolkit.lab.play import segments
from toolkit.lab.play.capacity import check_capacity
from toolkit.lab.play.matrix import Selection, check_agreement, specify
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.recipe import Recipe, load_recipe, recipe_of, specify_language_model
from toolkit.noise.regimes import DEFAULT, REGIMES
from toolkit.rules.plan import Settings
from toolkit.rules.rulebook import RuleBook
from toolkit.specification import PUBLISHED, LanguageModelSpecification, Specification
from toolkit.structs import UNSET, Document, UnsetType, about, parse, replace

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.registers.study import Study

FILE = "costs.toml"
HOUR = 3600
# Settings that decide how long an episode takes; a rate that was measured with others says nothing.
DECIDES_TIME = (
    *("model", "dtype", "lora.rank", "step.micro_batch", "sampling.max_completion_tokens"),
    *("sampling.max_turns", "sampling.context", "engine.kind", "engine.gpu_memory", "engine.thinking"),
    *("engine.dtype", "engine.sleep", "engine.conversations", "engine.prefix_caching"),
    *("engine.batched_tokens", "step.scored_at_once"),
)
PLACE = ("run_id", "condition", "arm", "seed", "tier", "steps")
COUNTED = ("steps", "groups", "rollouts", "periodic", "final", "diagnostic", "evaluated", "episodes")
NOT_EVALUABLE: Final = "not_evaluable"
HOW_TO_MEASURE = (
    "play some steps as a pilot, and give the seconds that a step took, --seconds-per-step, or the tokens "
    "that were generated in a second, --tokens-per-second"
)


class Range(Document, frozen=True):
    """A quantity that is known as a range; null for what is not known of it."""

    low: Annotated[float | None, about("At least.")]
    mean: Annotated[float | None, about("In the mean.")]
    high: Annotated[float, about("At most.")]

    def times(self, factor: float) -> Range:
        """Return the range, every number of it multiplied."""
        low, mean = (None if value is None else value * factor for value in (self.low, self.mean))
        return Range(low, mean, self.high * factor)

    def rounded(self) -> Range:
        """Return the range to six digits."""
        low, mean = (None if value is None else float(f"{value:.6g}") for value in (self.low, self.mean))
        return Range(low, mean, float(f"{self.high:.6g}"))


class PlannedRun(Document, frozen=True, kw_only=True):
    """A run of a plan."""

    run_id: Annotated[str, about("Name of the run.")]
    tier: Annotated[int, about("Tier of the registered matrix.")]
    condition: Annotated[str, about("Its condition.")]
    arm: Annotated[str, about("Its arm.")]
    seed: Annotated[int, about("Its seed.")]
    steps: Annotated[int, about("Training steps.")]
    groups: Annotated[int, about("Of training.")]
    rollouts: Annotated[int, about("Of training.")]
    periodic: Annotated[int, about("Episodes of the periodic evaluations.")]
    final: Annotated[int, about("Episodes of the final evaluation.")]
    diagnostic: Annotated[int, about("Episodes of the luck-share diagnostics.")]
    evaluated: Annotated[int, about("Episodes of all evaluations.")]
    episodes: Annotated[int, about("Rollouts and episodes of evaluation.")]
    checkpoints: Annotated[tuple[int, ...], about("Steps that leave one.")]
    hours: Annotated[Range | None, about("Null without a rate.")] = None


class PlannedTotal(Document, frozen=True):
    """All runs of a plan together."""

    runs: Annotated[int, about("How many runs.")]
    steps: Annotated[int, about("Training steps.")]
    groups: Annotated[int, about("Of training.")]
    rollouts: Annotated[int, about("Of training.")]
    periodic: Annotated[int, about("Episodes of the periodic evaluations.")]
    final: Annotated[int, about("Episodes of the final evaluation.")]
    diagnostic: Annotated[int, about("Episodes of the luck-share diagnostics.")]
    evaluated: Annotated[int, about("Episodes of all evaluations.")]
    episodes: Annotated[int, about("Rollouts and episodes of evaluation.")]
    checkpoints: Annotated[int, about("How many checkpoints.")]


class PlanBounds(Document, frozen=True):
    """The most tokens of sequences that training and evaluation can have, prompts included."""

    tokens_trained: Annotated[int, about("Tokens of training.")]
    tokens_evaluated: Annotated[int, about("Tokens of evaluation.")]


class Rate(NamedTuple):
    """GPU-seconds an episode, everything of a run divided among its episodes, and what gave them."""

    seconds: Range
    source: str


class PlannedTime(Document, frozen=True, rename={"source": "from"}):
    """How long a plan takes, run by run, each whole on a GPU; only the verdict where no rate can be had."""

    verdict: Annotated[Literal["estimated", "not_evaluable"], about("Whether a rate can be had.")]
    source: Annotated[str | UnsetType, about("What the rate was measured on.")] = UNSET
    gpu_seconds_an_episode: Annotated[
        Range | UnsetType, about("Everything of a run divided among its episodes.")
    ] = UNSET
    gpus: Annotated[int | UnsetType, about("How many there are.")] = UNSET
    runs_at_once: Annotated[int | UnsetType, about("Each is whole.")] = UNSET
    hours: Annotated[Range | UnsetType, about("From the first launch to the last end.")] = UNSET
    gpu_hours: Annotated[Range | UnsetType, about("Of all runs.")] = UNSET


class Setting(Document, frozen=True):
    """A setting of a recipe."""

    setting: Annotated[str, about("Its dotted name, as lora.rank.")]
    value: Annotated[object, about("As the recipe has it.")]
    source: Annotated[str, about("Where it comes from.")]


class PlannedRecipe(Document, frozen=True):
    """A recipe."""

    name: Annotated[str, about("Its name.")]
    sha256: Annotated[str, about("Of its canonical document.")]
    settings: tuple[Setting, ...]


class TrainingPlan(Document, frozen=True):
    """What a training would play, and how long it would take: with --dry-run."""

    recipe: PlannedRecipe
    study: Annotated[str, about("Name of the registration.")]
    runs: tuple[PlannedRun, ...]
    total: PlannedTotal
    bounds: PlanBounds
    time: PlannedTime
    lacks: Annotated[tuple[str, ...], about("Why something cannot be estimated.")]


class Basis(NamedTuple):
    """What durations are estimated from: a measured rate and the recipe of it, or the reader's own."""

    rate: Rate | None = None
    recipe: str = ""
    seconds_per_step: float | None = None
    tokens_per_second: float | None = None


class Measured(Document, frozen=True):
    """Where the seconds of measured runs are registered."""

    study: str
    hardware: str
    query: str


class Measurements(Document, frozen=True):
    """What a project says of measured runs."""

    registration: Annotated[str, about("Whose runs are planned where none are named.")]
    recipe: Annotated[str, about("What the measured runs were trained with.")]
    measured: Measured

    def basis(self, study: Study | None) -> Basis:
        """Return what durations are estimated from; without the study's registers, no rate."""
        from toolkit.registers.query import ask

        runs = (
            [self._measured_run(row) for row in ask(study, self.measured.query.strip()).rows] if study else []
        )
        rate = measured_rate(runs, f"{len(runs)} measured runs, {self.measured.hardware}") if runs else None
        return Basis(rate, self.recipe)

    def _measured_run(self, row: tuple[object, ...]) -> tuple[float, int]:
        try:
            _, seconds, episodes = row
            measured = float(str(seconds)), int(str(episodes))
        except ValueError:
            measured = (0.0, 0)
        if min(measured) <= 0:
            problem = "a measurement's query gives something else than measured runs"
            expected = "the name of a run, its seconds and its episodes, both above zero"
            raise DamagedError(problem, expected=expected, found=row, where=f"{FILE}, measured")
        return measured


def read_measurements(cards: Path) -> Measurements | None:
    """Read what a project says of measured runs; None where it says nothing."""
    path = cards / FILE
    if not path.is_file():
        return None
    problem = "the list of measured runs cannot be read"
    try:
        document = tomllib.loads(files.read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DamagedError(problem, found=error, where=path) from None
    return parse(Measurements, document, problem, path)


def measured_rate(runs: Sequence[tuple[float, int]], source: str) -> Rate:
    """Return the rate of runs that were measured on one GPU each, from the seconds and episodes of each."""
    each = [seconds / episodes for seconds, episodes in runs]
    mean = sum(seconds for seconds, _ in runs) / sum(episodes for _, episodes in runs)
    return Rate(Range(min(each), mean, max(each)), source)


def rate_of_step(recipe: Recipe, seconds: float) -> Rate:
    """Return the rate that a step's duration means; an evaluated episode is taken to cost a rollout."""
    each = seconds / (recipe.step.prompts * recipe.step.rollouts)
    return Rate(Range(None, None, each), f"{seconds:g} seconds a step, as given")


def rate_of_tokens(recipe: Recipe, tokens_per_second: float) -> Rate:
    """Return the rate that a number of tokens a second means: at most, as every episode may end early."""
    each = recipe.sampling.max_completion_tokens / tokens_per_second
    return Rate(
        Range(None, None, each),
        f"{tokens_per_second:g} tokens a second, as given, and episodes of "
        f"{recipe.sampling.max_completion_tokens:,} tokens, the most that there can be",
    )


def plan_time(runs: Sequence[PlannedRun], rate: Rate | None, gpus: int) -> PlannedTime:
    """Return how long runs take on some GPUs, each run whole: nothing was measured of one on several."""
    if rate is None:
        return PlannedTime(NOT_EVALUABLE)
    slots = min(gpus, len(runs))
    each = [rate.seconds.times(run.episodes / HOUR) for run in runs]
    low = None if rate.seconds.low is None else makespan([hours.low or 0.0 for hours in each], slots)
    mean = None if rate.seconds.mean is None else makespan([hours.mean or 0.0 for hours in each], slots)
    longest = Range(low, mean, makespan([hours.high for hours in each], slots))
    total = rate.seconds.times(sum(run.episodes for run in runs) / HOUR)
    seconds = rate.seconds.rounded()
    return PlannedTime("estimated", rate.source, seconds, gpus, slots, longest.rounded(), total.rounded())


def makespan(durations: Iterable[float], slots: int) -> float:
    """Return when the last of some jobs ends, the longest first, each where there is room first."""
    ends = [0.0] * slots
    for duration in sorted(durations, reverse=True):
        heapq.heapreplace(ends, ends[0] + duration)
    return max(ends)


def runs_of(book: RuleBook, selection: Selection) -> tuple[Specification, ...]:
    """Return the selected runs of a registration to be counted: their seeds derive from nothing."""
    return specify(book.plan, (book.name, ""), {}, selection)


def in_world(book: RuleBook, world: str) -> RuleBook:
    """Return a registration whose lines for another world, which have no regime, are planned in it.

    The published study's world takes every line that has one.
    """
    if world == PUBLISHED:
        cells = tuple(
            replace(cell, settings=replace(cell.settings, world=world, pools=cell.settings.pools or {}))
            for cell in book.plan.cells
            if cell.regime and cell.settings.world in {"", world}
        )
        return replace(book, plan=replace(book.plan, cells=cells))
    by_rate = {regime.fault_rate: regime.name for regime in REGIMES.values() if regime.mixture is DEFAULT}
    lines = tuple(
        replace(
            cell,
            regime=by_rate[float(cell.fixed["fault_rate"])],
            battery="learning",
            settings=Settings(world=world, pools={}),
        )
        for cell in book.plan.cells
        if not cell.regime and world.startswith(cell.condition.lower())
    )
    if not lines:
        raise UsageError(
            f"{book.name} has no run in {world}", expected="a line whose condition names it, without a regime"
        )
    return replace(book, plan=replace(book.plan, cells=lines))


def count_run(specification: Specification, rate: Rate | None = None) -> PlannedRun:
    """Return what a run plays, and how long that takes."""
    checkpoints = specification.ends
    played = Counter[str]()
    for step in checkpoints:
        for each in segments.sets_of(specification, step):
            played[each.phase] += each.tasks * each.schedules
    rollouts = specification.groups * specification.group_size
    tables = POOLS[diagnostic.POOL].size * diagnostic.SCHEDULES * diagnostic.SAMPLES
    diagnosed = len(specification.diagnosed) * tables
    evaluated = played["periodic"] + played["final"] + diagnosed
    return PlannedRun(
        **{name: getattr(specification, name) for name in PLACE},
        groups=specification.groups,
        rollouts=rollouts,
        periodic=played["periodic"],
        final=played["final"],
        diagnostic=diagnosed,
        evaluated=evaluated,
        episodes=rollouts + evaluated,
        checkpoints=checkpoints[1:],
        hours=rate and rate.seconds.times((rollouts + evaluated) / HOUR).rounded(),
    )


def planned_runs(book: RuleBook, selection: Selection) -> tuple[Specification, ...]:
    """Return the runs that are meant, as `runs_of`: where none is selected, those of the first tier."""
    runs = runs_of(book, selection)
    first = min(run.tier for run in runs)
    return tuple(run for run in runs if run.tier == first) if selection.is_everything else runs


def fixed_recipe(book: RuleBook, selection: Selection) -> Recipe:
    """Return the recipe that a registration fixes for its runs."""
    for run in planned_runs(book, selection):
        if isinstance(run, LanguageModelSpecification):
            return recipe_of(run)
    remedy = "for the paper's: --recipe qwen3.5-2b"
    raise UsageError(f"{book.name} fixes no recipe", expected="--recipe with the settings", remedy=remedy)


def plan_training(
    recipe: Recipe,
    specifications: Sequence[Specification],
    *,
    gpus: int,
    basis: Basis,
    where: str,
    sources: Mapping[str, str],
) -> TrainingPlan:
    """Return the plan of some runs on some GPUs; `where` says what was asked, for messages.

    `sources` say where each setting of the recipe comes from.
    """
    for specification in specifications:
        check_agreement(recipe, specification, where)
        is_specified = isinstance(specification, LanguageModelSpecification)
        check_capacity(specification if is_specified else specify_language_model(specification, recipe, ""))
    lacks: list[str] = []
    rate = _rate(recipe, basis, lacks)
    runs = tuple(count_run(specification, rate) for specification in specifications)
    total = PlannedTotal(
        runs=len(runs),
        **{name: sum(getattr(run, name) for run in runs) for name in COUNTED},
        checkpoints=sum(len(run.checkpoints) for run in runs),
    )
    context = recipe.sampling.context
    settings = (Setting(name, value, sources[name]) for name, value in recipe.settings().items())
    return TrainingPlan(
        PlannedRecipe(recipe.name, recipe.sha256(), tuple(settings)),
        specifications[0].study,
        runs,
        total,
        PlanBounds(total.rollouts * context, total.evaluated * context),
        plan_time(runs, rate, gpus),
        tuple(lacks),
    )


def _rate(recipe: Recipe, basis: Basis, lacks: list[str]) -> Rate | None:
    """Return the rate of an episode: the reader's own, or the measured one as far as it says something."""
    if basis.seconds_per_step is not None:
        return rate_of_step(recipe, basis.seconds_per_step)
    if basis.tokens_per_second is not None:
        return rate_of_tokens(recipe, basis.tokens_per_second)
    if basis.rate is None:
        lacks.append(f"time: no measured run is here; {HOW_TO_MEASURE}")
        return None
    ours, theirs = recipe.settings(), load_recipe(basis.recipe).settings()
    others = [name for name in DECIDES_TIME if ours[name] != theirs[name]]
    if others:
        lacks.append(f"time: what was measured had another {', '.join(others)}; {HOW_TO_MEASURE}")
        return None
    return basis.rate
