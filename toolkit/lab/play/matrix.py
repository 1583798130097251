"""The run matrix of a registration as specifications: which runs there are, and which of them are meant."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from toolkit.errors import IncompleteError, RuleError, UsageError, did_you_mean
from toolkit.lab.evaluation.diagnostic import POOL
from toolkit.lab.evaluation.sets import SIZES as OF_SETS
from toolkit.lab.evaluation.sets import sets_at
from toolkit.lab.tasks.pools import FOREIGN
from toolkit.lab.tasks.templates import REQUESTS_PER_TASK
from toolkit.lab.training.recipe import Recipe, read_recipe, specify_language_model
from toolkit.lab.training.rows import BLOCKING, RESAMPLED
from toolkit.noise.regimes import REGIMES
from toolkit.prereg.evidence import anchor
from toolkit.prereg.registration import Registration
from toolkit.rules.plan import Cell, Fixed, Plan, run_name
from toolkit.rules.rulebook import rulebook_of
from toolkit.specification import CHECKPOINT_EVERY, Specification

REFERENCE_ARM = "clean"
PILOT = "pilot"
MODEL = "model_commit"
SIZES = {"step.steps": "steps", "step.prompts": "prompts_per_step", "step.rollouts": "group_size"}
"""What a recipe and a matrix both say: the setting, and the field of a specification."""
BOTH = {**SIZES, "step.checkpoint_every": "checkpoint_every"}
"""What a recipe and a specification both say."""


COUNTED = ("training_groups", "training_rollouts")
"""What a line cannot fix where outcomes decide how many groups are played."""

OF_ANY_POLICY = ("sampling", "sub_requests", "world", "pools")
"""Settings that a language model's runs know too; the others are its recipe's, or the log-linear policy's."""

OF_EVALUATIONS = ("sampling", "surface_tokens", "checkpoint_every", "checkpoints")
"""Settings of runs that evaluate checkpoints of another study, and train nothing."""

WITH_ANY_TASKS = ("learning", "curve")
"""Batteries that need no pool but the one of the learning curve."""

LOSS = "dapo"
"""Aggregation of token losses: the sum over a step's decisions, divided by their number."""


@dataclass(frozen=True)
class Selection:
    """Which runs of a matrix are meant; each part that says something narrows the others."""

    tiers: tuple[int, ...] = ()  # tiers of the matrix
    rules: tuple[str, ...] = ()  # rules and curves that a line of the matrix serves
    runs: tuple[str, ...] = ()  # names of runs, with `*` and `?` for any text and any character

    @property
    def is_everything(self) -> bool:
        """Whether nothing was left out."""
        return not (self.tiers or self.rules or self.runs)


EVERYTHING = Selection()


def specify(
    plan: Plan, registration: tuple[str, str], pools: Mapping[str, str], selection: Selection = EVERYTHING
) -> tuple[Specification, ...]:
    """Return the selected runs of a matrix, in its order; lines without a regime cannot be played here."""
    playable = [cell for cell in plan.cells if cell.regime]
    if not playable:
        problem = f"no line of the matrix of {registration[0]!r} names the regime that its runs train under"
        remedy = "name a registration whose runs are played by this toolkit"
        raise IncompleteError(problem, expected="a line with `regime`", where="matrix", remedy=remedy)
    _check_known("tier", map(str, selection.tiers), {str(cell.tier) for cell in playable})
    _check_known("rule", selection.rules, {name for cell in playable for name in cell.serves})
    # What enters no decision, like a pilot, is played where its tier is asked for.
    lines = [
        cell
        for cell in playable
        if (cell.tier in selection.tiers if selection.tiers else not cell.role or cell.role in plan.roles)
        and (not selection.rules or any(rule in cell.serves for rule in selection.rules))
    ]
    candidates = [run for cell in lines for run in _runs(plan, cell, registration, pools)]
    for pattern in selection.runs:
        if not any(fnmatchcase(run.run_id, pattern) for run in candidates):
            raise UsageError(
                f"no run that can be played is called {pattern!r}",
                expected=", ".join(run.run_id for run in candidates)
                or "a tier and a rule with runs in common",
                remedy=did_you_mean(pattern, [run.run_id for run in candidates]),
            )
    meant = selection.runs or ("*",)
    chosen = tuple(run for run in candidates if any(fnmatchcase(run.run_id, pattern) for pattern in meant))
    if not chosen:
        raise UsageError("no run is in every part of the selection", remedy="leave one of its parts out")
    return chosen


def specify_registered(
    registration: Registration, pools: Mapping[str, str], selection: Selection = EVERYTHING
) -> tuple[Specification, ...]:
    """Return the selected runs of a registration, with every amendment applied; errors as `specify`."""
    book = rulebook_of(registration)
    # A registration whose runs are played elsewhere need not have its tokens here.
    playable = any(cell.regime for cell in book.plan.cells)
    return specify(book.plan, (registration.name, anchor(registration) if playable else ""), pools, selection)


def _runs(
    plan: Plan, cell: Cell, registration: tuple[str, str], pools: Mapping[str, str]
) -> Iterable[Specification]:
    study, anchored = registration
    steps, prompts, group = (_count(cell, name) for name in ("steps", "prompts_per_step", "group_size"))
    settings = _settings(cell, steps, has_recipe=bool(plan.recipe))
    evaluated = _checkpoints(cell)
    groups = 0 if evaluated else steps * prompts
    _check_fixed(cell, groups, groups * group)
    met = settings.pop("pools", None)
    if met is None:
        sets = sets_at(cell.battery, cell.at_noise or cell.regime, is_last=True)
        evaluated_on = {evaluation.pool for evaluation in sets} if evaluated else {*pools}
        met = {name: pools[name] for name in pools if name in evaluated_on}
    for arm in cell.arms:
        for seed in cell.seeds:
            specification = Specification(
                study=study,
                root=study if cell.role == PILOT else f"{study} {anchored}",
                run_id=run_name(cell.condition, arm, cell.scale_rewards, seed),
                condition=cell.condition,
                arm=arm,
                seed=seed,
                tier=cell.tier,
                role=cell.role or ("reference" if arm == REFERENCE_ARM else "primary"),
                regime=cell.regime,
                at_noise=cell.at_noise or cell.regime,
                scale_rewards=cell.scale_rewards,
                battery=cell.battery,
                steps=steps,
                prompts_per_step=prompts,
                group_size=group,
                diagnosed=_diagnosed(cell, arm, seed, steps),
                pools=dict(sorted(met.items())),
                **settings | ({"checkpoints": evaluated[arm, seed]} if evaluated else {}),
            )
            yield _of_policy(plan, cell, specification)


def _of_policy(plan: Plan, cell: Cell, specification: Specification) -> Specification:
    if not plan.recipe:
        return specification
    recipe = read_recipe(plan.recipe, "rules.toml, recipe")
    fixed = {
        "recipe_sha256": recipe.sha256(),
        "model_commit": recipe.revision or str(cell.fixed.get(MODEL, "")),
    }
    for name, field in SIZES.items():
        registered, value = getattr(specification, field), recipe.settings()[name]
        if value != registered:
            raise _disagreeing(name, registered, value, cell)
    for name, value in fixed.items():
        registered = cell.fixed.get(name, value)
        if not value or registered != value:
            expected = registered or "the commit of the model, or the digest of its files"
            raise _disagreeing(name, expected, value, cell)
    return specify_language_model(specification, recipe, fixed[MODEL])


def check_agreement(recipe: Recipe, specification: Specification, where: str) -> None:
    """Check that a recipe has the sizes that are registered for a run."""
    settings = recipe.settings()
    for name, field in BOTH.items():
        registered = getattr(specification, field)
        if settings[name] != registered:
            problem = f"the recipe's {name} is not what is registered"
            expected = f"{registered}, for {specification.run_id} of {specification.study}"
            remedy = f"leave --set {name} out, or register a study with these sizes"
            raise UsageError(problem, expected=expected, found=settings[name], where=where, remedy=remedy)


def _disagreeing(name: str, registered: object, found: object, cell: Cell) -> RuleError:
    problem = f"a line of the matrix and the registered recipe do not agree on {name}"
    where = f"matrix, {cell.condition}"
    return RuleError(problem, expected=registered, found=found or "nothing", where=where)


def _diagnosed(cell: Cell, arm: str, seed: int, steps: int) -> tuple[int, ...]:
    """Return the steps at which a run's luck share is diagnosed; in the middle for one run of a cell."""
    if cell.settings.checkpoints:
        return ()
    if cell.battery == "small":
        return (0,) if (arm, seed) == (cell.arms[0], cell.seeds[0]) else ()
    if cell.battery != "registered":
        return ()
    return (0, steps // 2, steps) if seed == 0 else (0, steps)


def _settings(cell: Cell, steps: int, *, has_recipe: bool) -> dict[str, Any]:
    settings = cell.settings.given()
    known = OF_EVALUATIONS if "checkpoints" in settings else cell.settings.__struct_fields__
    known = OF_ANY_POLICY if has_recipe else known
    for name in settings:
        if name not in known:
            problem = "a line of the matrix has a setting that no run has"
            raise _unset(cell, problem, name, f"one of {', '.join(known)}")
    if settings.get("sub_requests", 1) not in dict(REQUESTS_PER_TASK):
        numbers = ", ".join(str(number) for number, _ in REQUESTS_PER_TASK)
        problem = "a line of the matrix has a setting that no run has"
        raise _unset(cell, problem, "sub_requests", f"one of {numbers}")
    is_whole = POOL in FOREIGN.get(settings.get("world", ""), ())
    played = (*WITH_ANY_TASKS, *OF_SETS) if is_whole else WITH_ANY_TASKS
    if "world" in settings and (cell.battery not in played or "pools" not in settings):
        problem = "a line in a foreign world says its pools, and is evaluated on those that this world has"
        raise _unset(cell, problem, "world", f"battery one of {', '.join(played)}, and settings.pools")
    every = settings.get("checkpoint_every", CHECKPOINT_EVERY)
    if not has_recipe and steps % every:
        problem = f"checkpoints every {every} steps leave out the last of {steps}"
        raise _unset(cell, problem, "checkpoint_every", "a divisor of the steps")
    if settings.get("constant_groups") == RESAMPLED:
        counted = next((name for name in COUNTED if name in cell.fixed), None)
        if counted or BLOCKING & set(cell.arms):
            problem = f"a line of the matrix resamples groups, and fixes {counted or 'them in pairs'}"
            raise _unset(cell, problem, "constant_groups", f"no {counted or 'blocking'}: outcomes decide it")
    return settings


def _checkpoints(cell: Cell) -> dict[tuple[str, int], dict[str, str]]:
    """Return which checkpoints the runs of a line evaluate, by arm and seed; none where they train."""
    if not (evaluated := cell.settings.checkpoints):
        return {}
    where = f"matrix, {cell.condition}, checkpoints"
    number, digests = len(cell.seeds), evaluated.sha256
    if set(digests) != set(cell.arms) or any(len(each) != number for each in digests.values()):
        problem, expected = "checkpoints have a SHA-256 for each arm and seed", f"{number} of each arm"
        raise RuleError(problem, expected=expected, found=", ".join(digests), where=where)
    return {
        (arm, seed): {
            "study": evaluated.study,
            "run": run_name(evaluated.condition, arm, cell.scale_rewards, seed),
            "sha256": sha256,
        }
        for arm in cell.arms
        for seed, sha256 in zip(cell.seeds, digests[arm], strict=True)
    }


def _unset(cell: Cell, problem: str, name: str, expected: str) -> RuleError:
    given = cell.settings.given()
    found = f"{name} = {given[name]!r}" if name in given else None
    return RuleError(problem, expected=expected, found=found, where=f"matrix, {cell.condition}")


def _check_fixed(cell: Cell, groups: int, rollouts: int) -> None:
    """Check that what a line fixes is what its regime and its own sizes give."""
    regime = REGIMES[cell.regime]
    given: dict[str, Fixed] = {
        "fault_rate": Fraction(str(regime.fault_rate)),
        "flip_rate": Fraction(str(regime.flip_rate)),
        **dict(zip(COUNTED, map(Fraction, (groups, rollouts)), strict=True)),
        "loss_type": cell.settings.loss_type or LOSS,
    }
    for name, value in given.items():
        if cell.fixed.get(name, value) != value:
            problem = f"a line of the matrix fixes {name} to another value than its runs will have"
            where = f"matrix, {cell.condition} {cell.regime}"
            raise RuleError(problem, expected=_text(value), found=_text(cell.fixed[name]), where=where)


def _count(cell: Cell, name: str) -> int:
    value = cell.fixed.get(name)
    if not isinstance(value, Fraction) or value.denominator != 1 or value < 1:
        problem = f"a line of the matrix does not fix {name} to a whole number"
        found = None if value is None else _text(value)
        raise RuleError(problem, found=found, where=f"matrix, {cell.condition}")
    return int(value)


def _text(value: Fixed) -> str:
    return f"{float(value):g}" if isinstance(value, Fraction) else value


def _check_known(what: str, names: Iterable[str], known: set[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        problem = f"no run that can be played belongs to {what} {', '.join(unknown)}"
        raise UsageError(problem, expected=", ".join(sorted(known)), remedy=did_you_mean(unknown[0], known))
