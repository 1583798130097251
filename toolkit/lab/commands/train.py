"""`toolkit train`: a language model on the registered runs, and before that the plan of it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import click

from toolkit import cases
from toolkit.cli.options import command, flag, json_option, offer_registrations, option
from toolkit.cli.output import bold, print_json, print_table, remark, say_line, stepped, tell
from toolkit.cli.power import Finite
from toolkit.errors import UsageError
from toolkit.lab import plan as planning
from toolkit.lab.commands.options import folder_option, offer_recipes, selection_option
from toolkit.lab.play.language_model_run import TRACKERS, check_trackers
from toolkit.places import find_home
from toolkit.specification import PUBLISHED
from toolkit.structs import UNSET, Document, about

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolkit.lab.play.matrix import Selection
    from toolkit.lab.training.recipe import Recipe
    from toolkit.places import Home
    from toolkit.rules.rulebook import RuleBook
    from toolkit.specification import Specification


class Trained(Document, frozen=True):
    """Runs that were trained."""

    folder: Annotated[str, about("Where the runs are kept.")]
    completed: Annotated[tuple[str, ...], about("Runs that were trained to their end.")]
    kept: Annotated[tuple[str, ...], about("Runs that were complete before.")]


MOST_GPUS = 100_000
MOST_TRIED = 1000
SHOWN = ("loss", "grad_norm", "entropy")
WIDEST = 17
"""Characters of a setting in the table of a plan; a longer one stands on a line of its own."""
PLANNED_IN = {"bfcl": "bfcl_turns", PUBLISHED: PUBLISHED}
WORLDS_ASKED_BY = "qwen3.5-2b"
"""The registration whose matrix has runs in another world."""
ABOVE_ZERO = Finite(0, 1e12, min_open=True)


@command()
def train(
    *,
    name: str | None = option(
        "--recipe",
        metavar="NAME|FILE",
        shell_complete=offer_recipes,
        help="Settings: a name or a TOML file; default: those that STUDY fixes.",
    ),
    model: str | None = option(metavar="ID|FOLDER", help="Model to use instead, on the Hub or in a folder."),
    changes: tuple[str, ...] = option(
        "--set", multiple=True, metavar="SECTION.KEY=VALUE", help="Override a setting; may be repeated."
    ),
    study: str | None = option(
        metavar="REGISTRATION",
        shell_complete=offer_registrations,
        help="Study whose runs to train; default for a plan: the one of cards/costs.toml.",
    ),
    world: str | None = option(
        type=click.Choice(tuple(PLANNED_IN)),
        help="World of the runs; those in BFCL are planned, and not trained here.",
    ),
    selection: Selection = selection_option,
    dry_run: bool = flag(help="Print the plan, and train nothing."),
    tried: int | None = option(
        "--try",
        type=click.IntRange(1, MOST_TRIED),
        metavar="STEPS",
        help="Train some steps of the first selected run, outside any registration, and keep nothing.",
    ),
    gpus: int = option(type=click.IntRange(1, MOST_GPUS), default=1, help="Number of GPUs."),
    seconds_per_step: float | None = option(
        type=ABOVE_ZERO, help="Seconds per training step, as you measured it."
    ),
    tokens_per_second: float | None = option(
        type=ABOVE_ZERO, help="Tokens per second that one run's engine generates, as you measured it."
    ),
    cpu: bool = flag(help="Train without a GPU; vLLM then has to be a CPU build."),
    report_to: tuple[str, ...] = option(
        type=click.Choice(TRACKERS),
        multiple=True,
        help="Tracker to log each step to (W&B offline); may be repeated.",
    ),
    folder: Path | None = folder_option,
    as_json: bool = json_option,
) -> None:
    """Train a language model on the registered runs, with the settings of a recipe.

    With --dry-run nothing is trained: the plan lists every setting and its source, the episodes of the runs,
    and the time they take as far as measured runs or your own measurement tell. Without a selection, the runs
    are those of the matrix's first tier.

    With --try some steps are trained, reported and thrown away. Its seeds are not those of any registered
    run, and a draft is enough.

    With --world published the tasks, prompts, tools and faults are the published study's, in words that
    `toolkit adopt published CHECKOUT` puts in place. A run of a condition and seed there meets the tasks and
    schedules that the published run had: these seeds are the authors', and derive from no registration.

    \b
    Examples:
      toolkit train --recipe qwen3.5-2b --dry-run
      toolkit train --recipe qwen3.5-2b --dry-run --run c2-paired-s0 --json
      toolkit train --recipe qwen3.5-2b --dry-run --gpus 8 --seconds-per-step 420
      toolkit train --recipe qwen3.5-2b --dry-run --set step.micro_batch=1
      toolkit train --recipe qwen3.5-2b --dry-run --world bfcl
      toolkit train --recipe qwen3.5-2b --dry-run --world published
      toolkit train --recipe small --cpu --try 2
      toolkit train --recipe qwen3.5-2b --study my-study --run c2-paired-s0
      toolkit train --study my-study --run 'c2-*-s0' --folder shared
    """
    from toolkit.lab.training.recipe import LEFT_OUT, load_recipe, setting_sources

    if seconds_per_step is not None and tokens_per_second is not None:
        raise UsageError("give seconds a step or tokens a second, not both")
    home = find_home()
    measured = planning.read_measurements(home.cards)
    if tried and (dry_run or folder):
        raise UsageError("--try keeps nothing, and plans nothing", remedy="leave --dry-run and --folder out")
    _check_world(world, is_planned=dry_run)
    study = study or (measured.registration if measured and (dry_run or tried) and not world else None)
    book = _book(
        study or (WORLDS_ASKED_BY if world else None), home, draft_will_do=dry_run or tried is not None
    )
    book = planning.in_world(book, PLANNED_IN[world]) if world else book
    if name is None and (model or changes):
        raise UsageError("a registered recipe is not changed", remedy="leave --model and --set out")
    if name:
        recipe = load_recipe(name, model=model, changes=changes)
        sources = setting_sources(name, recipe, model=model, changes=changes) if dry_run else {}
    else:
        recipe = planning.fixed_recipe(book, selection)
        sources = dict.fromkeys(recipe.settings(), f"the registration {book.name}")
        sources |= dict.fromkeys(recipe.left_out(), LEFT_OUT)
    if tried:
        run = planning.planned_runs(book, selection)[0]
        _show_trial(run, recipe, tried, cpu=cpu, as_json=as_json)
        return
    if not dry_run:
        told: dict[str, Any] = {"cpu": cpu, "report_to": report_to, "as_json": as_json}
        _train(recipe, str(study), selection, home, folder, world=world, **told)
        return
    basis = planning.Basis(seconds_per_step=seconds_per_step, tokens_per_second=tokens_per_second)
    # What was measured was measured in the published study's back office.
    if measured and seconds_per_step is None and tokens_per_second is None and world in {None, PUBLISHED}:
        has_runs = measured.measured.study in home.studies()
        basis = measured.basis(cases.open_study(measured.measured.study, home) if has_runs else None)
    plan = planning.plan_training(
        recipe,
        planning.planned_runs(book, selection),
        gpus=gpus,
        basis=basis,
        where=" ".join((f"--recipe {recipe.name}", *(f"--set {change}" for change in changes))),
        sources=sources,
    )
    if as_json:
        print_json(plan)
    else:
        _show_plan(plan, recipe.model)


def _check_world(world: str | None, *, is_planned: bool) -> None:
    """Check that runs can be trained in a world; for a plan, say what its words lack."""
    from toolkit.errors import IncompleteError
    from toolkit.lab.worlds.published.office import office

    if world == PUBLISHED:
        try:
            office()
        except IncompleteError as error:
            if not is_planned:
                raise
            remark(f"{error.problem}; before a run in their world: {error.remedy}")
    elif world and not is_planned:
        problem = f"no language model is trained in {world} here"
        remedy = "train with your own loop, and let toolkit.noise.trainers give each group its schedule"
        raise UsageError(problem, expected="--dry-run, for the plan", remedy=remedy)


def _show_trial(run: Specification, recipe: Recipe, steps: int, *, cpu: bool, as_json: bool) -> None:
    from toolkit.lab.play import training_jobs
    from toolkit.lab.play.training_jobs import try_steps
    from toolkit.lab.training.devices import visible_gpus

    training_jobs.check_stack(recipe, cpu=cpu, say=remark, has_gpu=bool(visible_gpus()))
    trial = try_steps(run, recipe, steps, cpu=cpu, say=remark)
    if as_json:
        print_json(trial)
        return
    headings = ("step", "seconds", "success", "constant groups", "tokens", *SHOWN)
    rows = [
        (
            *(str(step.step), f"{step.seconds:.1f}", f"{step.success:.3f}", f"{step.constant:.3f}"),
            f"{step.tokens:,}",
            *("" if (figure := step.figures[name]) is None else f"{figure:.4g}" for name in SHOWN),
        )
        for step in trial.steps
    ]
    say_line(bold(run.run_id), f"   {recipe.name}, {recipe.model}: tried, and nothing was kept")
    print_table(headings, rows, numbers=headings)
    say_line(trial.stack)
    if trial.kernels:
        say_line(f"linear attention: {trial.kernels}")
    say_line(f"for a plan: --seconds-per-step {trial.seconds_per_step:.4g}")


def _book(name: str | None, home: Home, *, draft_will_do: bool) -> RuleBook:
    """Return the rules of the registration that is meant; a draft's where nothing is registered by it."""
    from toolkit.files import read_text
    from toolkit.prereg.registration import RULES, is_draft, load_registration
    from toolkit.rules.rulebook import load_rulebook, rulebook_of

    if name is None:
        problem = "say whose runs are meant"
        remedy = "a study of your own begins with `toolkit new-study`"
        raise UsageError(problem, expected=f"--study {' or '.join(home.registration_names())}", remedy=remedy)
    folder = home.registration_folder(name)
    if draft_will_do and is_draft(folder):
        remark(f"{name} is a draft; before a run of it: toolkit freeze {name}")
        return load_rulebook(read_text(folder / RULES))
    return rulebook_of(load_registration(folder))


def _train(
    recipe: Recipe,
    study: str,
    selection: Selection,
    home: Home,
    folder: Path | None,
    *,
    world: str | None,
    cpu: bool,
    report_to: tuple[str, ...],
    as_json: bool,
) -> None:
    from toolkit.lab.executors.executor import HERE
    from toolkit.lab.play import matrix, training_jobs
    from toolkit.lab.task_pools import STUDY_POOLS, pool_digests
    from toolkit.lab.training.devices import is_first_process, visible_gpus
    from toolkit.prereg.registration import load_registration
    from toolkit.rules.rulebook import rulebook_of

    registration = load_registration(home.registration_folder(study))
    planned = {run.run_id: run.world for run in planning.planned_runs(rulebook_of(registration), selection)}
    if world and (others := [run for run, own in planned.items() if own != world]):
        problem = f"{others[0]} of {study} is registered in another world"
        found = planned[others[0]] or "the back office"
        raise UsageError(problem, expected=world, found=found, remedy="leave --world out")
    # Of processes that were launched together, one speaks.
    say = remark if is_first_process() else lambda _: None
    training_jobs.check_stack(recipe, cpu=cpu, say=say, has_gpu=bool(visible_gpus()))
    check_trackers(report_to)
    into = (folder or home.runs / registration.name).absolute()
    with stepped("pools", len(STUDY_POOLS)) as progress:
        pools = pool_digests(home, STUDY_POOLS, progress)
    runs = matrix.specify_registered(registration, pools, selection)
    jobs = [
        training_jobs.TrainJob(training_jobs.with_recipe(run, recipe), recipe.model, into, cpu, report_to)
        for run in runs
        if run.run_id in planned
    ]
    trained = training_jobs.train_runs(jobs, HERE.telling(HERE.watch, say))
    if is_first_process():
        document = Trained(str(into), trained.completed, trained.kept)
        tell(document, f"{len(jobs)} runs complete in {into}", as_json=as_json)


def _range(hours: planning.Range | None) -> str:
    if hours is None:
        return planning.NOT_EVALUABLE
    if hours.low is None:
        return f"at most {hours.high:,.1f}"
    ends = f"{hours.low:,.1f} to {hours.high:,.1f}"
    return ends if hours.mean is None else f"{hours.mean:,.1f} ({ends})"


def _show_plan(plan: planning.TrainingPlan, model: str) -> None:
    recipe = plan.recipe
    say_line(bold(recipe.name), f"   {model}, planned on the runs of {plan.study}; nothing is trained")
    say_line(f"recipe {recipe.sha256}")
    rows = []
    for setting in recipe.settings:
        text = str(setting.value).lower() if isinstance(setting.value, bool) else str(setting.value)
        if len(text) > WIDEST:
            say_line(f"{setting.setting} {text}: {setting.source}")
        else:
            rows.append((setting.setting, text, setting.source))
    print_table(("setting", "value", "where from"), rows)
    _show_runs(plan)
    _show_time(plan)
    for lack in plan.lacks:
        subject, _, reason = lack.partition(": ")
        say_line(f"{subject}: {planning.NOT_EVALUABLE}: {reason}")


def _show_runs(plan: planning.TrainingPlan) -> None:
    rows = []
    # A line for the runs of an arm that differ in their seeds alone; of the first seed more is diagnosed.
    for (tier, condition, arm), group in groupby(plan.runs, lambda run: (run.tier, run.condition, run.arm)):
        runs = list(group)
        evaluated = sorted({run.evaluated for run in runs})
        rows.append(
            (
                *(str(tier), condition, arm, _seeds([run.seed for run in runs])),
                _one(run.rollouts for run in runs),
                " to ".join(f"{number:,}" for number in (evaluated[0], *evaluated[1:][-1:])),
                _range(max(runs, key=lambda run: run.episodes).hours),
            )
        )
    counts = ("rollouts", "evaluated", "hours a run")
    print_table(("tier", "condition", "arm", "seeds", *counts), rows, numbers=counts, dropped=("evaluated",))
    total, bounds = plan.total, plan.bounds
    checkpoints = ", ".join(map(str, plan.runs[0].checkpoints))
    say_line(
        f"{_number(total.runs, 'run')}, each with checkpoints at {checkpoints}: "
        f"{total.groups:,} groups, {total.rollouts:,} rollouts, "
        f"{total.evaluated:,} episodes of evaluation ({total.periodic:,} periodic, {total.final:,} final, "
        f"{total.diagnostic:,} diagnostic)"
    )
    say_line(
        f"at most {bounds.tokens_trained:.3g} tokens of training and {bounds.tokens_evaluated:.3g} of "
        "evaluation"
    )


def _show_time(plan: planning.TrainingPlan) -> None:
    time = plan.time
    if time.gpus is UNSET or time.hours is UNSET or time.gpu_hours is UNSET:
        return
    say_line(f"time from {time.source}")
    say_line(
        f"{_number(len(plan.runs), 'run')} on {_number(time.gpus, 'GPU')}, {time.runs_at_once} at once, "
        f"each whole: {_range(time.hours)} hours"
    )
    say_line(f"GPU-hours: {_range(time.gpu_hours)}")


def _number(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _seeds(seeds: list[int]) -> str:
    if len(seeds) > 3 and seeds == list(range(seeds[0], seeds[-1] + 1)):  # noqa: PLR2004 - more than fit
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _one(numbers: Iterable[int]) -> str:
    return " or ".join(f"{number:,}" for number in sorted(set(numbers)))
