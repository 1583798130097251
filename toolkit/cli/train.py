"""`toolkit train`: a language model on the registered runs, and before that the plan of it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit import api
from toolkit.cli.output import json_option, print_json, remark, say_line
from toolkit.cli.power import Finite
from toolkit.cli.progress import counted, steps
from toolkit.cli.training_plan import plan_document, show_plan
from toolkit.errors import UsageError
from toolkit.places import find_home

if TYPE_CHECKING:
    from toolkit.places import Home
    from toolkit.prereg.registration import Registration
    from toolkit.study.executors.where import Where
    from toolkit.study.plan.measured import Basis, Measurements
    from toolkit.study.play.matrix import Selection
    from toolkit.study.play.runner import Played
    from toolkit.study.play.workplace import Workplace
    from toolkit.training.recipe import Recipe
    from toolkit.training.specification import LanguageModelSpecification, Specification

EXTRAS = {"vllm": "gpu", "transformers": "train"}
"""Engine → the extra that it needs."""
NEEDED = {"vllm": ("torch", "transformers", "peft", "trl", "vllm")}
TASK_POOLS = "task-pools"
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
@click.option("--tier", "tiers", type=int, multiple=True, help="Only runs of this tier; may be repeated.")
@click.option("--rule", "rules", multiple=True, help="Only runs that serve this rule; may be repeated.")
@click.option("--run", "runs", multiple=True, metavar="GLOB", help="Only runs of this name; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Print the plan, and do nothing.")
@click.option(
    "--gpus", type=click.IntRange(1, MOST_GPUS), default=1, show_default=True, help="GPUs there are."
)
@click.option("--memory", type=ABOVE_ZERO, metavar="GB", help="Of one GPU; that of cards/costs.toml, or 80.")
@click.option("--seconds-per-step", type=ABOVE_ZERO, help="What a training step takes, as you measured it.")
@click.option("--tokens-per-second", type=ABOVE_ZERO, help="What one run's engine generates, likewise.")
@click.option("--cpu", is_flag=True, help="Train without a GPU; the recipe's engine has to be transformers.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where runs are trained and kept; `runs/STUDY` of the project if left out.",
)
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
    from toolkit.study.plan.training_plan import plan_training
    from toolkit.study.play.matrix import Selection
    from toolkit.training.recipe import load_recipe, setting_sources

    if seconds_per_step is not None and tokens_per_second is not None:
        raise UsageError("give seconds a step or tokens a second, not both")
    home = find_home()
    measured = read_measurements(home.cards)
    registration = _registration(study, measured if dry_run else None, home)
    selection = Selection(tiers, rules, runs)
    recipe = load_recipe(name, model=model, changes=changes) if name else _fixed(registration, selection)
    if name is None and (model or changes):
        raise UsageError("a registered recipe is not changed", remedy="leave --model and --set out")
    if not dry_run:
        _train(recipe, registration, selection, home, folder, cpu=cpu, as_json=as_json)
        return
    given = seconds_per_step is not None or tokens_per_second is not None
    basis = (
        Basis(seconds_per_step=seconds_per_step, tokens_per_second=tokens_per_second)
        if given
        else _measured(measured, home)
    )
    accelerator = memory * GIGA if memory else measured.accelerator if measured else USUAL_MEMORY_GB * GIGA
    plan = plan_training(
        recipe,
        _planned(registration, selection),
        accelerator=round(accelerator),
        gpus=gpus,
        basis=basis,
        where=" ".join((f"--recipe {recipe.name}", *(f"--set {change}" for change in changes))),
    )
    sources = (
        setting_sources(name, recipe, model=model, changes=changes)
        if name
        else dict.fromkeys(recipe.settings(), f"the registration {registration.name}")
    )
    if as_json:
        print_json(plan_document(plan, sources))
    else:
        show_plan(plan, sources)


def _fixed(registration: Registration, selection: Selection) -> Recipe:
    """Return the recipe that a registration fixes for its runs.

    Raises:
        UsageError: it fixes none.
    """
    from toolkit.study.play.training_jobs import language_models

    runs = language_models(_planned(registration, selection))
    if not runs:
        raise UsageError(
            f"{registration.name} fixes no recipe",
            expected="--recipe with the settings",
            remedy="for the paper's: --recipe qwen3.5-2b",
        )
    return runs[0].settings


def _registration(name: str | None, measured: Measurements | None, home: Home) -> Registration:
    from toolkit.prereg.registration import load_registration

    if name is None and measured is None:
        raise UsageError(
            "say whose runs are meant",
            expected=f"--study {' or '.join(home.registration_names())}",
            remedy="a study of your own begins with `toolkit new-study`",
        )
    return load_registration(home.registration_folder(name or (measured.registration if measured else "")))


def _planned(registration: Registration, selection: Selection) -> tuple[Specification, ...]:
    """Return the runs that are meant: where none is selected, those of the first tier."""
    from toolkit.study.plan.counting import runs_of

    found = runs_of(registration, selection)
    if not selection.is_everything:
        return found
    first = min(run.tier for run in found)
    return tuple(run for run in found if run.tier == first)


def _measured(measured: Measurements | None, home: Home) -> Basis:
    """Return what was measured here, as far as the study that holds it is here."""
    from toolkit.study.plan.measured import Basis

    if measured is None:
        return Basis()
    return measured.basis(api.open_study(measured.study, home) if measured.study in home.studies() else None)


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
    from toolkit.study.executors.where import HERE
    from toolkit.study.new.task_pools import digests
    from toolkit.study.play.matrix import specify_registered
    from toolkit.study.play.training_jobs import TrainJob, train_runs

    planned = {run.run_id for run in _planned(registration, selection)}
    check_stack(recipe, cpu=cpu)
    root = Path.cwd() if home.is_shipped else home.root
    into = (folder or root / "runs" / registration.name).absolute()
    with steps("pools") as progress:
        registered = api.open_study(TASK_POOLS, home) if (home.registers / TASK_POOLS).is_dir() else None
        pools = digests(api.STUDY_POOLS, registered, progress)
    runs = specify_registered(registration, pools, selection)
    jobs = [
        TrainJob(_specified(recipe, run, registration.name), recipe.model, into, cpu)
        for run in runs
        if run.run_id in planned
    ]
    trained = train_runs(jobs, HERE, say=remark)
    if as_json:
        print_json({"folder": str(into), "completed": list(trained.completed), "kept": list(trained.kept)})
        return
    say_line(f"{len(jobs)} runs complete in {into}")


def _specified(recipe: Recipe, run: Specification, study: str) -> LanguageModelSpecification:
    """Return a run with a recipe; where its registration fixes one, it is that.

    Raises:
        UsageError: the recipe is not the registered one, or has other sizes.
    """
    from toolkit.policies.language_model.loading import model_path
    from toolkit.policies.language_model.opening import model_commit
    from toolkit.study.plan.counting import check_agreement
    from toolkit.training.specification import (
        LanguageModelSpecification,
        specify_language_model,
    )

    if not isinstance(run, LanguageModelSpecification):
        check_agreement(recipe, run, study)
        return specify_language_model(
            run, recipe, model_commit(model_path(recipe.model), recipe.revision or None)
        )
    if run.settings != recipe:
        raise UsageError(
            f"{study} fixes another recipe for {run.run_id}",
            expected=f"{run.settings.name}, SHA-256 {run.settings.sha256()}",
            found=f"{recipe.name}, SHA-256 {recipe.sha256()}",
            remedy="leave --recipe, --model and --set out",
        )
    return run


def train_models(
    workplace: Workplace, specifications: tuple[Specification, ...], where: Where
) -> Played | None:
    """Train the runs where they are language models'; whoever trains a run holds it.

    Returns:
        What came of it; None where no run is a language model's.
    """
    from toolkit.study.play.training_jobs import TrainJob, language_models, train_runs

    runs = language_models(specifications)
    if not runs:
        return None
    engines = {run.settings.engine.kind for run in runs}
    cpu = engines == {"transformers"} and not has_gpu()
    for run in runs:
        check_stack(run.settings, cpu=cpu)
    jobs = [TrainJob(run, run.settings.model, workplace.folder, cpu) for run in runs]
    with counted("training") as (watch, say):
        return train_runs(jobs, where, watch=lambda tick: watch(tick.done, tick.total, tick.doing), say=say)


def check_repeatable(specifications: tuple[Specification, ...], *, check: bool) -> None:
    """Refuse to compare the runs of language models row by row.

    Raises:
        UsageError: it was asked for.
    """
    from toolkit.study.play.training_jobs import language_models

    if check and language_models(specifications):
        raise UsageError(
            "the runs of language models are not compared row by row",
            found="--check: their last digits are those of the machine and of its libraries",
            remedy="train them with --folder elsewhere, and compare with `toolkit diff`",
        )


def check_stack(recipe: Recipe, *, cpu: bool) -> None:
    """Check that this machine can train: packages, and a GPU unless it goes without.

    Args:
        recipe: the settings.
        cpu: whether to train without a GPU.

    Raises:
        UsageError: a package or the GPU is missing, or the recipe's engine needs one.
    """
    kind = recipe.engine.kind
    if cpu and kind == "vllm":
        raise UsageError(
            "the recipe's engine generates on a GPU",
            found=f"engine.kind = {kind!r}, and --cpu",
            remedy="without a GPU: --cpu --set engine.kind=transformers",
        )
    needed = NEEDED.get(kind, NEEDED["vllm"][:-1])
    here = {name: _version(name) for name in needed}
    missing = [name for name, found in here.items() if found is None]
    if missing:
        raise UsageError(
            "training a language model needs packages that are not installed",
            expected=", ".join(needed),
            found=f"without {', '.join(missing)}",
            remedy=f'pip install "paired-rollouts-toolkit[{EXTRAS[kind]}]"; for the plan alone: --dry-run',
        )
    for name, found in here.items():
        pinned = recipe.packages.get(name)
        if pinned and found and found.partition("+")[0] != pinned:
            remark(f"{name} {found} is installed; the recipe was written for {pinned}")
    if not cpu and not has_gpu():
        raise UsageError(
            "there is no GPU on this machine",
            expected="an accelerator that PyTorch sees",
            remedy="for the plan alone: --dry-run; for a model that a processor can train: "
            "--cpu --set engine.kind=transformers",
        )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def has_gpu() -> bool:
    """Return whether PyTorch sees an accelerator; False where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())
