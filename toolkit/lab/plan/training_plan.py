"""The plan of a language model's training before any of it is done: runs, memory, time, what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from toolkit.decisions.rulebook import RuleBook
from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.evaluation import diagnostic
from toolkit.lab.plan.measured import Basis
from toolkit.lab.play import segments
from toolkit.lab.play.capacity import check_capacity
from toolkit.lab.play.matrix import Selection, check_agreement, specify
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training import plan
from toolkit.lab.training.architecture import Model, find_model
from toolkit.lab.training.memory import Memory, estimate_memory, gpus_needed
from toolkit.lab.training.recipe import Recipe, load_recipe
from toolkit.noise.regimes import DEFAULT, REGIMES
from toolkit.specification import LanguageModelSpecification, Specification, specify_language_model

if TYPE_CHECKING:
    from toolkit.documents import runs as documents

# Settings that decide how long an episode takes; a rate that was measured with others says nothing.
DECIDES_TIME = (
    *("dtype", "lora.rank", "step.micro_batch", "sampling.max_completion_tokens", "sampling.max_turns"),
    *("sampling.context", "engine.kind", "engine.gpu_memory", "engine.thinking"),
    *("engine.dtype", "engine.sleep", "engine.conversations"),
)
NOT_EVALUABLE: Final = "not_evaluable"
NOT_COUNTED = "what libraries keep besides, and a model's tower for images, are not counted"
UNTRIED = (
    "no run was ever trained with its weights divided among GPUs, and `toolkit train` refuses to; what is "
    "tested is a whole copy in each process"
)
HOW_TO_MEASURE = (
    "play some steps as a pilot, and give the seconds that a step took, --seconds-per-step, or the tokens "
    "that were generated in a second, --tokens-per-second"
)


def runs_of(book: RuleBook, selection: Selection) -> tuple[Specification, ...]:
    """Return the selected runs of a registration, frozen or not, to be counted and not to be played.

    Their seeds derive from nothing: neither tokens nor pools are asked for, so that anybody can plan.
    """
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


def count_run(specification: Specification) -> plan.RunCounts:
    """Return what a run plays."""
    checkpoints = specification.ends
    played = Counter[str]()
    for step in checkpoints:
        for each in segments.sets_of(specification, step):
            played[each.phase] += each.tasks * each.schedules
    groups = specification.groups
    tables = POOLS[diagnostic.POOL].size * diagnostic.SCHEDULES * diagnostic.SAMPLES
    return plan.RunCounts(
        **_place(specification),
        steps=specification.steps,
        groups=groups,
        rollouts=groups * specification.group_size,
        periodic=played["periodic"],
        final=played["final"],
        diagnostic=len(specification.diagnosed) * tables,
        checkpoints=checkpoints[1:],
    )


def _place(run: Specification | plan.RunCounts) -> dict[str, Any]:
    return {name: getattr(run, name) for name in ("run_id", "tier", "condition", "arm", "seed")}


def planned_runs(book: RuleBook, selection: Selection) -> tuple[Specification, ...]:
    """Return the runs that are meant, as `runs_of`: where none is selected, those of the first tier."""
    runs = runs_of(book, selection)
    first = min(run.tier for run in runs)
    return tuple(run for run in runs if run.tier == first) if selection.is_everything else runs


def fixed_recipe(book: RuleBook, selection: Selection) -> Recipe:
    """Return the recipe that a registration fixes for its runs."""
    for run in planned_runs(book, selection):
        if isinstance(run, LanguageModelSpecification):
            return run.settings
    raise UsageError(
        f"{book.name} fixes no recipe",
        expected="--recipe with the settings",
        remedy="for the paper's: --recipe qwen3.5-2b",
    )


@dataclass(frozen=True)
class TrainingPlan:
    """A plan.

    Args:
        recipe: the settings.
        study: name of the registration.
        runs: what each run plays.
        model: the model's sizes; None where they cannot be had.
        memory: of one GPU; None without sizes.
        gpus_a_run: GPUs that hold one run; None without sizes.
        rate: of an episode; None where none can be had.
        schedule: of the runs; None without a rate.
        lacks: why something is None.
    """

    recipe: Recipe
    study: str
    runs: tuple[plan.RunCounts, ...]
    model: Model | None
    memory: Memory | None
    gpus_a_run: int | None
    rate: plan.Rate | None
    schedule: plan.Schedule | None
    lacks: tuple[str, ...]

    @property
    def total(self) -> documents.PlannedTotalDocument:
        """What all runs play together."""
        checkpoints = sum(len(run.checkpoints) for run in self.runs)
        return {"runs": len(self.runs), **_counts(self.runs), "checkpoints": checkpoints}

    @property
    def bounds(self) -> documents.PlanBoundsDocument:
        """The most tokens of training and evaluation, and the most operations; None without sizes."""
        trained, evaluated = plan.most_tokens(self.runs, self.recipe)
        architecture = self.model.architecture if self.model else None
        operations = plan.most_operations(self.runs, self.recipe, architecture) if architecture else None
        return {"tokens_trained": trained, "tokens_evaluated": evaluated, "operations": operations}

    def document(self, sources: Mapping[str, str]) -> documents.TrainingPlanDocument:
        """Return the plan as JSON values."""
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
            "memory": self._memory(),
            "time": self._time(),
            "lacks": list(self.lacks),
        }

    def _run(self, run: plan.RunCounts) -> documents.PlannedRunDocument:
        return {
            "run_id": run.run_id,
            "tier": run.tier,
            "condition": run.condition,
            "arm": run.arm,
            "seed": run.seed,
            **_counts([run]),
            "checkpoints": list(run.checkpoints),
            "hours": _range(plan.run_hours(run, self.rate) if self.rate else None),
        }

    def _memory(self) -> documents.PlannedMemoryDocument:
        memory, model = self.memory, self.model
        if memory is None or model is None:
            return {"verdict": NOT_EVALUABLE}
        return {
            "verdict": memory.verdict,
            "accelerator_bytes": memory.accelerator,
            "low_bytes": memory.low,
            "high_bytes": memory.high,
            "gpus_a_run": self.gpus_a_run,
            "engine_sequences": memory.sequences,
            "parameters": model.architecture.parameters,
            "sizes_from": model.source,
            "parts": [
                {"part": part.name, "low_bytes": part.low, "high_bytes": part.high, "how": part.how}
                for part in memory.parts
            ],
            "not_counted": NOT_COUNTED,
        }

    def _time(self) -> documents.PlannedTimeDocument:
        rate, schedule = self.rate, self.schedule
        if rate is None or schedule is None:
            return {"verdict": NOT_EVALUABLE}
        return {
            "verdict": NOT_EVALUABLE if not schedule.hours else "estimated" if rate.gpus == 1 else "untried",
            "from": rate.source,
            "gpu_seconds_an_episode": _range(rate.seconds),
            "gpus_a_run": rate.gpus,
            "gpus": schedule.gpus,
            "runs_at_once": schedule.slots,
            "hours": _range(schedule.hours),
            "gpu_hours": _range(schedule.gpu_hours),
        }


def plan_training(
    recipe: Recipe,
    specifications: Sequence[Specification],
    *,
    accelerator: int,
    gpus: int,
    basis: Basis,
    where: str,
) -> TrainingPlan:
    """Return the plan of some runs."""
    lacks: list[str] = []
    model = _model(recipe, lacks)
    coordinates = model.architecture.adapter_parameters(recipe.lora.rank) if model else None
    for specification in specifications:
        check_agreement(recipe, specification, where)
        is_specified = isinstance(specification, LanguageModelSpecification)
        run = specification if is_specified else specify_language_model(specification, recipe, "")
        check_capacity(run, coordinates)
    runs = tuple(map(count_run, specifications))
    memory = estimate_memory(recipe, model.architecture, accelerator) if model else None
    needed = gpus_needed(recipe, model.architecture, accelerator) if model else None
    rate = _rate(recipe, model, needed, basis, lacks)
    if needed and needed > 1:
        lacks.append(f"a run on {needed} GPUs: {UNTRIED}")
    return TrainingPlan(
        recipe=recipe,
        study=specifications[0].study,
        runs=runs,
        model=model,
        memory=memory,
        gpus_a_run=needed,
        rate=rate,
        schedule=plan.schedule(runs, rate, gpus) if rate else None,
        lacks=tuple(lacks),
    )


def _model(recipe: Recipe, lacks: list[str]) -> Model | None:
    try:
        return find_model(recipe.model, recipe.revision)
    except IncompleteError as error:
        detail = f" ({error.found})" if error.found else ""
        lacks.append(f"memory: {error.problem}{detail}; {error.remedy or error.expected}")
        return None


def _rate(
    recipe: Recipe, model: Model | None, gpus: int | None, basis: Basis, lacks: list[str]
) -> plan.Rate | None:
    """Return the rate of an episode: the reader's own, or the measured one as far as it says something."""
    if basis.seconds_per_step is not None:
        return plan.rate_of_step(recipe, basis.seconds_per_step, gpus or 1)
    if basis.tokens_per_second is not None:
        return plan.rate_of_tokens(recipe, basis.tokens_per_second, gpus or 1)
    if basis.rate is None:
        lacks.append(f"time: no measured run is here; {HOW_TO_MEASURE}")
        return None
    measured = load_recipe(basis.recipe)
    ours, theirs = recipe.settings(), measured.settings()
    others = tuple(name for name in DECIDES_TIME if ours[name] != theirs[name])
    same_model = recipe.model == measured.model
    if model is None or gpus is None:
        others += () if same_model else ("model",)
    if others:
        lacks.append(f"time: what was measured had another {', '.join(others)}; {HOW_TO_MEASURE}")
        return None
    if same_model or model is None or gpus is None:
        return basis.rate
    return plan.rescaled(basis.rate, find_model(measured.model).architecture, model.architecture, gpus)


def _counts(runs: Sequence[plan.RunCounts]) -> documents.PlayedCountsDocument:
    return {
        "steps": sum(run.steps for run in runs),
        "groups": sum(run.groups for run in runs),
        "rollouts": sum(run.rollouts for run in runs),
        "periodic": sum(run.periodic for run in runs),
        "final": sum(run.final for run in runs),
        "diagnostic": sum(run.diagnostic for run in runs),
        "evaluated": sum(run.evaluated for run in runs),
        "episodes": sum(run.episodes for run in runs),
    }


def _range(hours: plan.Range | None) -> documents.RangeDocument | None:
    """Return a range as JSON values, to six digits."""
    if hours is None:
        return None
    low, mean = (None if value is None else _six(value) for value in (hours.low, hours.mean))
    return {"low": low, "mean": mean, "high": _six(hours.high)}


def _six(value: float) -> float:
    return float(f"{value:.6g}")
