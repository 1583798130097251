"""What the runs of a matrix play, counted from their specifications and the registered evaluation sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.decisions.rulebook import load_rulebook
from toolkit.errors import UsageError
from toolkit.evaluation.diagnostic import POOL, SAMPLES, SCHEDULES
from toolkit.evaluation.sets import sets_at
from toolkit.study.play.matrix import SIZES, specify
from toolkit.tasks.pools import POOLS
from toolkit.training.plan import RunCounts

if TYPE_CHECKING:
    from toolkit.prereg.registration import Registration
    from toolkit.study.play.matrix import Selection
    from toolkit.training.recipe import Recipe
    from toolkit.training.specification import Specification

# What recipe and registration both say of a run: a setting, and the field of a specification.
BOTH = {**SIZES, "step.checkpoint_every": "checkpoint_every"}


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


def check_agreement(recipe: Recipe, specification: Specification, where: str) -> None:
    """Check that a recipe has the sizes that are registered for a run.

    Args:
        recipe: the settings.
        specification: the run.
        where: what was asked, for messages.

    Raises:
        UsageError: they differ: a registered run has the registered sizes.
    """
    settings = recipe.settings()
    for name, field in BOTH.items():
        registered = getattr(specification, field)
        if settings[name] != registered:
            raise UsageError(
                f"the recipe's {name} is not what is registered",
                expected=f"{registered}, for {specification.run_id} of {specification.study}",
                found=settings[name],
                where=where,
                remedy=f"leave --set {name} out, or register a study with these sizes",
            )
