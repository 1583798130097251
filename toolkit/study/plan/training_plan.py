"""The plan of a language model's training before any of it is done: runs, memory, time, what is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError
from toolkit.study.plan.counting import check_agreement, count_run
from toolkit.training.architecture import find_model
from toolkit.training.memory import estimate_memory, gpus_needed
from toolkit.training.plan import rate_of_step, rate_of_tokens, rescaled, schedule
from toolkit.training.recipe import load_recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.study.plan.measured import Basis
    from toolkit.training.architecture import Model
    from toolkit.training.memory import Memory
    from toolkit.training.plan import Rate, RunCounts, Schedule
    from toolkit.training.recipe import Recipe
    from toolkit.training.specification import Specification

# Settings that decide how long an episode takes; a rate that was measured with others says nothing.
DECIDES_TIME = (
    *("dtype", "lora.rank", "step.micro_batch", "sampling.max_completion_tokens", "sampling.max_turns"),
    *("sampling.context", "engine.kind", "engine.gpu_memory", "engine.thinking"),
)
HOW_TO_MEASURE = (
    "play some steps as a pilot, and give the seconds that a step took, --seconds-per-step, or the tokens "
    "that were generated in a second, --tokens-per-second"
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
    runs: tuple[RunCounts, ...]
    model: Model | None
    memory: Memory | None
    gpus_a_run: int | None
    rate: Rate | None
    schedule: Schedule | None
    lacks: tuple[str, ...]


def plan_training(
    recipe: Recipe,
    specifications: Sequence[Specification],
    *,
    accelerator: int,
    gpus: int,
    basis: Basis,
    where: str,
) -> TrainingPlan:
    """Return the plan of some runs.

    Args:
        recipe: the settings.
        specifications: the runs, one or more.
        accelerator: memory of a GPU, in bytes.
        gpus: how many GPUs there are.
        basis: what durations are estimated from.
        where: what was asked, for messages.

    Raises:
        UsageError: the recipe has other sizes than are registered.
    """
    for specification in specifications:
        check_agreement(recipe, specification, where)
    runs = tuple(map(count_run, specifications))
    lacks: list[str] = []
    model = _model(recipe, lacks)
    memory = estimate_memory(recipe, model.architecture, accelerator) if model else None
    needed = gpus_needed(recipe, model.architecture, accelerator) if model else None
    rate = _rate(recipe, model, needed, basis, lacks)
    return TrainingPlan(
        recipe=recipe,
        study=specifications[0].study,
        runs=runs,
        model=model,
        memory=memory,
        gpus_a_run=needed,
        rate=rate,
        schedule=schedule(runs, rate, gpus) if rate else None,
        lacks=tuple(lacks),
    )


def _model(recipe: Recipe, lacks: list[str]) -> Model | None:
    try:
        return find_model(recipe.model, recipe.revision)
    except IncompleteError as error:
        found = f" ({error.found})" if error.found else ""
        lacks.append(f"memory: {error.problem}{found}; {error.remedy or error.expected}")
        return None


def _rate(
    recipe: Recipe, model: Model | None, gpus: int | None, basis: Basis, lacks: list[str]
) -> Rate | None:
    """Return the rate of an episode: the reader's own, or the measured one as far as it says something."""
    if basis.seconds_per_step is not None:
        return rate_of_step(recipe, basis.seconds_per_step, gpus or 1)
    if basis.tokens_per_second is not None:
        return rate_of_tokens(recipe, basis.tokens_per_second, gpus or 1)
    if basis.rate is None:
        lacks.append(f"time: no measured run is here; {HOW_TO_MEASURE}")
        return None
    measured = load_recipe(basis.recipe)
    others = _differing(recipe, measured)
    same_model = recipe.model == measured.model
    if model is None or gpus is None:
        others += () if same_model else ("model",)
    if others:
        lacks.append(f"time: what was measured had another {', '.join(others)}; {HOW_TO_MEASURE}")
        return None
    if same_model or model is None or gpus is None:
        return basis.rate
    return rescaled(basis.rate, find_model(measured.model).architecture, model.architecture, gpus)


def _differing(recipe: Recipe, measured: Recipe) -> tuple[str, ...]:
    """Return the settings that decide how long an episode takes and are not those that were measured."""
    ours, theirs = recipe.settings(), measured.settings()
    return tuple(name for name in DECIDES_TIME if ours[name] != theirs[name])
