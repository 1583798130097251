"""`toolkit train`: a language model on the registered runs, and before that the plan of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli.executing import folder_option, selection_options
from toolkit.cli.output import json_option, print_json, remark, steps, tell
from toolkit.cli.power import Finite
from toolkit.cli.training_plan import show_plan
from toolkit.errors import UsageError
from toolkit.places import find_home

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.places import Home
    from toolkit.prereg.registration import Registration
    from toolkit.study.play.matrix import Selection
    from toolkit.training.recipe import Recipe

GIGA = 10**9
USUAL_MEMORY_GB = 80
MOST_GPUS = 100_000
ABOVE_ZERO = Finite(0, 1e12, min_open=True)


@click.command()
@click.option(
    "--recipe",
    "name",
    metavar="NAME|FILE",
    help="Settings: a name, or a TOML file; those that STUDY fixes if left out.",
)
@click.option("--model", metavar="ID|FOLDER", help="Another model, on the Hub or in a folder.")
@click.option(
    "--set", "changes", multiple=True, metavar="SECTION.KEY=VALUE", help="Another setting; may be repeated."
)
@click.option(
    "--study", metavar="REGISTRATION", help="Whose runs; for a plan, that of cards/costs.toml if left out."
)
@selection_options
@click.option("--dry-run", is_flag=True, help="Print the plan, and do nothing.")
@click.option("--gpus", type=click.IntRange(1, MOST_GPUS), default=1, help="GPUs there are.")
@click.option("--memory", type=ABOVE_ZERO, metavar="GB", help="Of one GPU; that of cards/costs.toml, or 80.")
@click.option("--seconds-per-step", type=ABOVE_ZERO, help="What a training step takes, as you measured it.")
@click.option("--tokens-per-second", type=ABOVE_ZERO, help="What one run's engine generates, likewise.")
@click.option("--cpu", is_flag=True, help="Train without a GPU; the recipe's engine has to be transformers.")
@folder_option("trained")
@json_option
def train(
    *,
    name: str | None,
    model: str | None,
    changes: tuple[str, ...],
    study: str | None,
    tiers: tuple[int, ...],
    rules: tuple[str, ...],
    runs: tuple[str, ...],
    dry_run: bool,
    gpus: int,
    memory: float | None,
    seconds_per_step: float | None,
    tokens_per_second: float | None,
    cpu: bool,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Train a language model on the registered runs, with the settings of a recipe.

    With --dry-run nothing is trained: the plan says every setting and where it comes from, what the runs
    play, what a GPU has to hold, and how long it takes, as far as measured runs or your own measurement say
    so. Where no run is selected, the first tier of the matrix is meant.

    \b
    Examples:
      toolkit train --recipe qwen3.5-2b --dry-run
      toolkit train --recipe qwen3.5-2b --dry-run --run c2-paired-s0 --json
      toolkit train --recipe qwen3.5-2b --dry-run --tier 1 --gpus 8 --seconds-per-step 420
      toolkit train --recipe qwen3.5-2b --dry-run --model dense-70b --gpus 64
      toolkit train --recipe qwen3.5-2b --dry-run --set step.micro_batch=1 --memory 40
      toolkit train --recipe qwen3.5-2b --study my-study --run c2-paired-s0
      toolkit train --study my-study --run 'c2-*-s0' --folder shared
    """
    from toolkit.study.plan.measured import Basis, read_measurements
    from toolkit.study.plan.training_plan import fixed_recipe, plan_training, planned_runs
    from toolkit.study.play.matrix import Selection
    from toolkit.training.recipe import load_recipe, setting_sources

    if seconds_per_step is not None and tokens_per_second is not None:
        raise UsageError("give seconds a step or tokens a second, not both")
    home = find_home()
    measured = read_measurements(home.cards)
    registration = _registration(study or (measured.registration if measured and dry_run else None), home)
    selection = Selection(tiers, rules, runs)
    if name is None and (model or changes):
        raise UsageError("a registered recipe is not changed", remedy="leave --model and --set out")
    if name:
        recipe = load_recipe(name, model=model, changes=changes)
        sources = setting_sources(name, recipe, model=model, changes=changes) if dry_run else {}
    else:
        recipe = fixed_recipe(registration, selection)
        sources = dict.fromkeys(recipe.settings(), f"the registration {registration.name}")
    if not dry_run:
        _train(recipe, registration, selection, home, folder, cpu=cpu, as_json=as_json)
        return
    basis = Basis(seconds_per_step=seconds_per_step, tokens_per_second=tokens_per_second)
    if measured and seconds_per_step is None and tokens_per_second is None:
        has_runs = measured.study in home.studies()
        basis = measured.basis(api.open_study(measured.study, home) if has_runs else None)
    accelerator = measured.accelerator if measured else USUAL_MEMORY_GB * GIGA
    plan = plan_training(
        recipe,
        planned_runs(registration, selection),
        accelerator=round(memory * GIGA) if memory else accelerator,
        gpus=gpus,
        basis=basis,
        where=" ".join((f"--recipe {recipe.name}", *(f"--set {change}" for change in changes))),
    )
    if as_json:
        print_json(plan.document(sources))
    else:
        show_plan(plan, sources)


def _registration(name: str | None, home: Home) -> Registration:
    from toolkit.prereg.registration import load_registration

    if name is None:
        raise UsageError(
            "say whose runs are meant",
            expected=f"--study {' or '.join(home.registration_names())}",
            remedy="a study of your own begins with `toolkit new-study`",
        )
    return load_registration(home.registration_folder(name))


def _train(
    recipe: Recipe,
    registration: Registration,
    selection: Selection,
    home: Home,
    folder: Path | None,
    *,
    cpu: bool,
    as_json: bool,
) -> None:
    """Train the selected runs, one after the other; each goes on from where it was."""
    from toolkit.study.executors.executor import HERE
    from toolkit.study.plan.training_plan import planned_runs
    from toolkit.study.play.matrix import specify_registered
    from toolkit.study.play.training_jobs import TrainJob, check_stack, train_runs, with_recipe

    planned = {run.run_id for run in planned_runs(registration, selection)}
    check_stack(recipe, cpu=cpu, say=remark)
    into = (folder or home.runs / registration.name).absolute()
    with steps("pools") as progress:
        pools = api.pool_digests(home, progress)
    runs = specify_registered(registration, pools, selection)
    jobs = [
        TrainJob(with_recipe(run, recipe), recipe.model, into, cpu) for run in runs if run.run_id in planned
    ]
    trained = train_runs(jobs, HERE.telling(HERE.watch, remark))
    document = {"folder": str(into), "completed": list(trained.completed), "kept": list(trained.kept)}
    tell(document, f"{len(jobs)} runs complete in {into}", as_json=as_json)
