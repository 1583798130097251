"""What the runs of a matrix play, counted from their specifications and the registered evaluation sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.decisions.rulebook import load_rulebook
from toolkit.errors import UsageError
from toolkit.evaluation.diagnostic import POOL, SAMPLES, SCHEDULES
from toolkit.evaluation.sets import sets_at
from toolkit.study.play.matrix import Selection, specify
from toolkit.tasks.pools import POOLS
from toolkit.training.plan import RunCounts
from toolkit.training.specification import LanguageModelSpecification

if TYPE_CHECKING:
    from toolkit.prereg.registration import Registration
    from toolkit.training.recipe import Recipe
    from toolkit.training.specification import Specification


def runs_of(registration: Registration, selection: Selection) -> tuple[Specification, ...]:
    """Return the selected runs of a registration, to be counted and not to be played.

    Their seeds derive from nothing: neither tokens nor pools are asked for, so that anybody can plan.

    Raises:
        IncompleteError: no line of the matrix can be played.
        UsageError: the selection names what no playable line has.
    """
    book = load_rulebook(registration.rules, [amendment.rules for amendment in registration.amendments])
    return specify(book.plan, (registration.name, ""), {}, selection)


def count_run(specification: Specification) -> RunCounts:
    """Return what a run plays."""
    checkpoints = range(0, specification.steps + 1, specification.checkpoint_every)
    played = {"periodic": 0, "final": 0}
    for step in checkpoints:
        is_last = step == specification.steps
        for each in sets_at(specification.battery, specification.at_noise, is_last=is_last):
            played[each.phase] += each.tasks * each.schedules
    groups = specification.steps * specification.prompts_per_step
    return RunCounts(
        run_id=specification.run_id,
        condition=specification.condition,
        arm=specification.arm,
        seed=specification.seed,
        tier=specification.tier,
        steps=specification.steps,
        groups=groups,
        rollouts=groups * specification.group_size,
        periodic=played["periodic"],
        final=played["final"],
        diagnostic=len(specification.diagnosed) * POOLS[POOL].size * SCHEDULES * SAMPLES,
        checkpoints=tuple(checkpoints)[1:],
    )


def planned_runs(registration: Registration, selection: Selection) -> tuple[Specification, ...]:
    """Return the runs that are meant, as `runs_of`: where none is selected, those of the first tier."""
    runs = runs_of(registration, selection)
    first = min(run.tier for run in runs)
    return tuple(run for run in runs if run.tier == first) if selection.is_everything else runs


def fixed_recipe(registration: Registration, selection: Selection) -> Recipe:
    """Return the recipe that a registration fixes for its runs.

    Raises:
        UsageError: it fixes none.
    """
    for run in planned_runs(registration, selection):
        if isinstance(run, LanguageModelSpecification):
            return run.settings
    raise UsageError(
        f"{registration.name} fixes no recipe",
        expected="--recipe with the settings",
        remedy="for the paper's: --recipe qwen3.5-2b",
    )
