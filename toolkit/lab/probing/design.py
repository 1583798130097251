"""The registered probe as a design, its seeds anchored in what registered it."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, RuleError, UsageError
from toolkit.estimators.advantages import OF_ROLLOUTS
from toolkit.lab.probe.design import DERIVED, DRIFT, OUTCOME, TRANSITION, Design, RolloutSet
from toolkit.lab.training.recipe import recipe_of
from toolkit.prereg.evidence import amendment_anchor, anchor
from toolkit.prereg.registration import Registration
from toolkit.registers.row_tables import TABLES_OF_PROBE
from toolkit.registers.study import Study
from toolkit.rules.plan import ProbePlan
from toolkit.rules.rulebook import RuleBook, rulebook_of

if TYPE_CHECKING:
    from toolkit.specification import Specification

SECTION = "probe"
PROMPTS, ROLLOUTS = "prompts_per_step", "group_size"
"""What a line of the matrix calls the size of its training steps."""
CHECKPOINTS = "probe_checkpoints"
INDICES = "probe_indices"
TABULATED = (CHECKPOINTS, *DERIVED, DRIFT)
"""Tables of which a trajectory's JSON holds the rows."""


@dataclass(frozen=True)
class RegisteredProbe:
    """The registered probe of a study."""

    design: Design  # what it measures
    runs: tuple[Specification, ...]  # the runs whose checkpoints it scores
    # The checkpoints that it scores besides the untrained policy; all where there are none
    steps: tuple[int, ...] = ()


def registers_probe(registration: Registration) -> bool:
    """Whether a registration, amendments included, registers a probe."""
    texts = (registration.rules, *(amendment.rules for amendment in registration.amendments))
    return any(SECTION in tomllib.loads(text) for text in texts)


def registered_probe(
    registration: Registration, specifications: Iterable[Specification]
) -> RegisteredProbe | None:
    """Return the registered probe; None where there is none."""
    book = rulebook_of(registration)
    design = registered_design(registration, book)
    if design is None or book.probe is None:
        return None
    runs = probed_runs(book.probe, specifications)
    per_step = {run.prompts_per_step * run.group_size for run in runs}
    if per_step != {design.rollouts_per_step}:
        raise _sizes_differ(per_step, registration)
    _check_probed(runs, book.probe.steps, registration)
    return RegisteredProbe(design, runs, book.probe.steps)


def probed_runs(plan: ProbePlan, specifications: Iterable[Specification]) -> tuple[Specification, ...]:
    """Return the runs that a registered probe scores."""
    runs = [run for run in specifications if run.tier in plan.tiers]
    unknown = set(plan.runs) - {run.run_id for run in runs}
    if unknown:
        problem = "the probe names a run that its tiers do not have"
        expected = ", ".join(run.run_id for run in runs)
        raise RuleError(problem, expected=expected, found=", ".join(sorted(unknown)), where=SECTION)
    return tuple(run for run in runs if not plan.runs or run.run_id in plan.runs)


def registered_design(registration: Registration, book: RuleBook) -> Design | None:
    """Return what a registered probe measures; None where there is none. No run is specified for it."""
    plan = book.probe
    if plan is None:
        return None
    per_step = {
        int(prompts * group)
        for cell in book.plan.cells
        if cell.regime and cell.tier in plan.tiers and (not cell.role or cell.role in book.plan.roles)
        if isinstance(prompts := cell.fixed.get(PROMPTS), Fraction)
        if isinstance(group := cell.fixed.get(ROLLOUTS), Fraction)
    }
    if len(per_step) != 1:
        raise _sizes_differ(per_step, registration)
    amendment = next(
        (change.id for change in registration.amendments if SECTION in tomllib.loads(change.rules)), None
    )
    anchored = anchor(registration) if amendment is None else amendment_anchor(registration, amendment)
    outcome, transition, size = plan.outcome, plan.transition, plan.group_size
    worlds = {cell.settings.world for cell in book.plan.cells if cell.regime and cell.tier in plan.tiers}
    if len(worlds) > 1:
        problem, found = "the runs to be probed are not played in one world", ", ".join(sorted(worlds))
        raise IncompleteError(problem, expected="one world", found=found, where=registration.folder)
    world = worlds.pop()
    return Design(
        root=f"{registration.name} {anchored}",
        scored=plan.scored,
        outcome=RolloutSet(
            OUTCOME, outcome.pool, outcome.regime, outcome.tasks, 1, outcome.rollouts or size, world
        ),
        transition=RolloutSet(
            *(TRANSITION, transition.pool, transition.regime, transition.tasks, transition.schedules),
            size,
            world,
        ),
        flip_rate=float(plan.flip_rate),
        groups=transition.groups,
        rollouts_per_step=per_step.pop(),
        level=float(plan.level),
        resamples=plan.resamples,
        rng_seed=plan.rng_seed,
    )


def _sizes_differ(per_step: Collection[int], registration: Registration) -> IncompleteError:
    problem = "the runs to be probed do not share the size of a training step"
    expected = "one number of rollouts a step"
    found = ", ".join(map(str, sorted(per_step))) or "no run"
    return IncompleteError(problem, expected=expected, found=found, where=registration.folder)


def is_measured_by(design: Design, study: Study) -> bool:
    """Whether what a study holds of a probe says that the registered design measured it, all of it."""
    if not any(study.has(name) for name in TABLES_OF_PROBE):
        return True
    if not (study.has(CHECKPOINTS) and study.has(SECTION)):
        return False
    key = ["trajectory", "step", "scored"]
    designs = study.columns(CHECKPOINTS, [*key, "spec_sha256"]).to_pylist()
    probed = {tuple(row[name] for name in key) for row in designs}
    summarized = {tuple(row[name] for name in key) for row in study.columns(SECTION, key).to_pylist()}
    return {row["spec_sha256"] for row in designs} == {design.sha256()} and summarized <= probed


def _check_probed(runs: Sequence[Specification], steps: Sequence[int], registration: Registration) -> None:
    """Check that runs have the steps that are probed, and that one untrained policy stands for all."""
    from toolkit.specification import LanguageModelSpecification

    for run in runs:
        if isinstance(run, LanguageModelSpecification) and recipe_of(run).engine.kind == "vllm":
            level = recipe_of(run).loss.importance_sampling.level
            if level not in OF_ROLLOUTS:
                raise UsageError(
                    "the probe weighs whole rollouts; the recipe corrects what vLLM samples token by token",
                    expected=f"loss.importance_sampling.level = {' or '.join(OF_ROLLOUTS)}",
                    found=level,
                    where=f"{registration.folder}, {run.run_id}",
                    remedy="register such a recipe, or engine.kind = transformers; or leave [probe] out",
                )
        if not run.keeps_checkpoints:
            problem = f"the probe is registered for {run.run_id}, whose checkpoints are not kept"
            remedy = "leave `registers` out of its line of the matrix"
            raise IncompleteError(problem, where=registration.folder, remedy=remedy)
        lacking = sorted(set(steps) - {step for step in run.ends if step})
        if lacking:
            problem = f"the probe is registered at steps at which {run.run_id} has no checkpoint"
            expected = ", ".join(str(step) for step in run.ends if step)
            found = ", ".join(map(str, lacking))
            raise IncompleteError(problem, expected=expected, found=found, where=registration.folder)
    policies = {
        (recipe_of(run).sha256(), run.model_commit) if isinstance(run, LanguageModelSpecification) else None
        for run in runs
    }
    if len(policies) > 1:
        raise IncompleteError(
            "the runs to be probed do not start from one untrained policy",
            expected="one recipe and one model",
            found=f"{len(policies)} of them",
            where=registration.folder,
            remedy="register the probe for tiers that share them",
        )


def required_probe(registration: Registration, specifications: Iterable[Specification]) -> RegisteredProbe:
    """Return the registered probe."""
    probe = registered_probe(registration, specifications)
    if probe is None:
        problem = f"registration {registration.name!r} registers no probe"
        expected = "a table [probe] in its rules or in an amendment"
        remedy = "register one before it is measured: toolkit amend --template"
        raise IncompleteError(problem, expected=expected, where=registration.folder, remedy=remedy)
    return probe
