"""The plan of a language model's training before any of it is done: runs, tokens, time, what is not known."""

from __future__ import annotations

import heapq
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, Self, cast

from toolkit import files
from toolkit.errors import DamagedError, UsageError
from toolkit.lab.evaluation import diagnostic
from toolkit.lab.play import segments
from toolkit.lab.play.capacity import check_capacity
from toolkit.lab.play.matrix import Selection, check_agreement, specify
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.recipe import Recipe, load_recipe, recipe_of, specify_language_model
from toolkit.noise.regimes import DEFAULT, REGIMES
from toolkit.rules.rulebook import RuleBook
from toolkit.specification import LanguageModelSpecification, Specification
from toolkit.structs import Document, about, parse, replace

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.documents import runs as documents
    from toolkit.registers.study import Study

FILE = "costs.toml"
HOUR = 3600
# Settings that decide how long an episode takes; a rate that was measured with others says nothing.
DECIDES_TIME = (
    *("model", "dtype", "lora.rank", "step.micro_batch", "sampling.max_completion_tokens"),
    *("sampling.max_turns", "sampling.context", "engine.kind", "engine.gpu_memory", "engine.thinking"),
    *("engine.dtype", "engine.sleep", "engine.conversations"),
)
PLACE = ("run_id", "condition", "arm", "seed", "tier", "steps")
COUNTED = ("steps", "groups", "rollouts", "periodic", "final", "diagnostic", "evaluated", "episodes")
NOT_EVALUABLE: Final = "not_evaluable"
HOW_TO_MEASURE = (
    "play some steps as a pilot, and give the seconds that a step took, --seconds-per-step, or the tokens "
    "that were generated in a second, --tokens-per-second"
)


@dataclass(frozen=True)
class RunCounts:
    """What a run plays: its groups and rollouts of training, and its episodes of evaluation."""

    run_id: str
    condition: str
    arm: str
    seed: int
    tier: int
    steps: int
    groups: int
    rollouts: int
    periodic: int
    final: int
    diagnostic: int
    checkpoints: tuple[int, ...]

    @property
    def evaluated(self) -> int:
        """Episodes that are played to evaluate."""
        return self.periodic + self.final + self.diagnostic

    @property
    def episodes(self) -> int:
        """Episodes of training and evaluation together."""
        return self.rollouts + self.evaluated


class Range(NamedTuple):
    """A quantity that is known as a range: at least, in the mean, at most; None for what is not known."""

    low: float | None
    mean: float | None
    high: float

    def times(self, factor: float) -> Self:
        """Return the range, every number of it multiplied."""
        return type(self)(*(None if value is None else value * factor for value in self))  # type: ignore[arg-type]


class Rate(NamedTuple):
    """GPU-seconds an episode, everything of a run divided among its episodes, and what gave them."""

    seconds: Range
    source: str


@dataclass(frozen=True)
class Schedule:
    """Runs, one after the other, on some GPUs."""

    gpus: int
    slots: int
    hours: Range
    gpu_hours: Range


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


def run_hours(run: RunCounts, rate: Rate) -> Range:
    """Return how long a run takes, in hours."""
    return rate.seconds.times(run.episodes / HOUR)


def schedule_runs(runs: Sequence[RunCounts], rate: Rate, gpus: int) -> Schedule:
    """Return how long runs take on some GPUs, each run whole: nothing was measured of one on several."""
    slots = min(gpus, len(runs))
    hours = [run_hours(run, rate) for run in runs]
    ends = [
        None if any(range_[i] is None for range_ in hours) else makespan([h[i] or 0.0 for h in hours], slots)
        for i in range(3)
    ]
    longest = Range(ends[0], ends[1], ends[2] or 0.0)
    return Schedule(gpus, slots, longest, rate.seconds.times(sum(run.episodes for run in runs) / HOUR))


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
    """Return a registration whose lines for another world, which have no regime, are planned in it."""
    by_rate = {regime.fault_rate: regime.name for regime in REGIMES.values() if regime.mixture is DEFAULT}
    lines = tuple(
        replace(
            cell,
            regime=by_rate[float(cell.fixed["fault_rate"])],
            battery="learning",
            settings={"world": world, "pools": {}},
        )
        for cell in book.plan.cells
        if not cell.regime and world.startswith(cell.condition.lower())
    )
    if not lines:
        raise UsageError(
            f"{book.name} has no run in {world}", expected="a line whose condition names it, without a regime"
        )
    return replace(book, plan=replace(book.plan, cells=lines))


def count_run(specification: Specification) -> RunCounts:
    """Return what a run plays."""
    checkpoints = specification.ends
    played = Counter[str]()
    for step in checkpoints:
        for each in segments.sets_of(specification, step):
            played[each.phase] += each.tasks * each.schedules
    groups = specification.groups
    tables = POOLS[diagnostic.POOL].size * diagnostic.SCHEDULES * diagnostic.SAMPLES
    return RunCounts(
        **{name: getattr(specification, name) for name in PLACE},
        groups=groups,
        rollouts=groups * specification.group_size,
        periodic=played["periodic"],
        final=played["final"],
        diagnostic=len(specification.diagnosed) * tables,
        checkpoints=checkpoints[1:],
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


@dataclass(frozen=True)
class TrainingPlan:
    """A plan: what each run plays, and how long that takes; `lacks` says why the time is None."""

    recipe: Recipe
    study: str
    runs: tuple[RunCounts, ...]
    rate: Rate | None
    schedule: Schedule | None
    lacks: tuple[str, ...]

    @property
    def total(self) -> documents.PlannedTotalDocument:
        """What all runs play together."""
        checkpoints = sum(len(run.checkpoints) for run in self.runs)
        return {"runs": len(self.runs), **_counts(self.runs), "checkpoints": checkpoints}

    @property
    def bounds(self) -> documents.PlanBoundsDocument:
        """The most tokens of sequences that training and evaluation can have, prompts included."""
        context = self.recipe.sampling.context
        return {
            "tokens_trained": sum(run.rollouts for run in self.runs) * context,
            "tokens_evaluated": sum(run.evaluated for run in self.runs) * context,
        }

    def document(self, sources: Mapping[str, str]) -> documents.TrainingPlanDocument:
        """Return the plan as JSON values, each setting with its source."""
        return {
            "recipe": {
                "name": self.recipe.name,
                "sha256": self.recipe.sha256(),
                "settings": [
                    {"setting": name, "value": value, "source": sources[name]}
                    for name, value in self.recipe.settings().items()
                ],
            },
            "study": self.study,
            "runs": [self._run(run) for run in self.runs],
            "total": self.total,
            "bounds": self.bounds,
            "time": self._time(),
            "lacks": list(self.lacks),
        }

    def _run(self, run: RunCounts) -> documents.PlannedRunDocument:
        return {
            "run_id": run.run_id,
            "tier": run.tier,
            "condition": run.condition,
            "arm": run.arm,
            "seed": run.seed,
            **_counts([run]),
            "checkpoints": list(run.checkpoints),
            "hours": _range(run_hours(run, self.rate)) if self.rate else None,
        }

    def _time(self) -> documents.PlannedTimeDocument:
        rate, schedule = self.rate, self.schedule
        if rate is None or schedule is None:
            return {"verdict": NOT_EVALUABLE}
        return {
            "verdict": "estimated",
            "from": rate.source,
            "gpu_seconds_an_episode": _range(rate.seconds),
            "gpus": schedule.gpus,
            "runs_at_once": schedule.slots,
            "hours": _range(schedule.hours),
            "gpu_hours": _range(schedule.gpu_hours),
        }


def plan_training(
    recipe: Recipe, specifications: Sequence[Specification], *, gpus: int, basis: Basis, where: str
) -> TrainingPlan:
    """Return the plan of some runs on some GPUs; `where` says what was asked, for messages."""
    for specification in specifications:
        check_agreement(recipe, specification, where)
        is_specified = isinstance(specification, LanguageModelSpecification)
        check_capacity(specification if is_specified else specify_language_model(specification, recipe, ""))
    lacks: list[str] = []
    runs = tuple(map(count_run, specifications))
    rate = _rate(recipe, basis, lacks)
    schedule = schedule_runs(runs, rate, gpus) if rate else None
    return TrainingPlan(recipe, specifications[0].study, runs, rate, schedule, tuple(lacks))


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


def _counts(runs: Sequence[RunCounts]) -> documents.PlayedCountsDocument:
    counted = {name: sum(getattr(run, name) for run in runs) for name in COUNTED}
    return cast("documents.PlayedCountsDocument", counted)


def _range(hours: Range) -> documents.RangeDocument:
    low, mean = (None if value is None else float(f"{value:.6g}") for value in (hours.low, hours.mean))
    return {"low": low, "mean": mean, "high": float(f"{hours.high:.6g}")}
