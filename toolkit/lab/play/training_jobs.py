"""Training the language models of a matrix: each run is a job, in whatever place there is; and trials."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from toolkit.errors import UsageError
from toolkit.lab.executors.executor import HERE, Executor, Say
from toolkit.lab.executors.folder import go_on
from toolkit.lab.play import language_model_run, matrix
from toolkit.lab.play.capacity import check_capacity
from toolkit.lab.play.language_model_run import Pace
from toolkit.lab.play.workplace import PlayedRuns, Workplace
from toolkit.lab.policies.language_model import loading
from toolkit.lab.policies.language_model.loading import FOR_PROCESSORS, installed, model_path
from toolkit.lab.policies.language_model.opening import model_commit
from toolkit.lab.training.devices import ANEW, launched_together, visible_gpus
from toolkit.lab.training.language_model.groups import GENERATION_TIME, step_figures
from toolkit.lab.training.language_model.session import Moments, open_session, stack
from toolkit.lab.training.recipe import Recipe, read_recipe, recipe_of, specify_language_model
from toolkit.registers.arrow import Row
from toolkit.specification import LanguageModelSpecification, Specification
from toolkit.structs import Document, about, replace

EXTRAS = {"vllm": "gpu", "transformers": "train"}
"""Engine → the extra that it needs."""
PACKAGES = ("torch", "transformers", "peft", "trl")


@dataclass(frozen=True)
class TrainJob:
    """Train a run."""

    specification: LanguageModelSpecification  # the run
    model: str  # folder or name of the model that it starts from
    folder: Path  # the study's folder
    cpu: bool  # whether to train without a GPU
    report_to: tuple[str, ...] = ()  # trackers that are told each step's figures, of `reporting.TRACKERS`

    @property
    def subject(self) -> str:
        """What the job is about."""
        return self.specification.run_id

    def __str__(self) -> str:
        return f"{self.subject}, its training"


def language_models(specifications: Iterable[Specification]) -> tuple[LanguageModelSpecification, ...]:
    """Return the runs among these that train language models."""
    return tuple(run for run in specifications if isinstance(run, LanguageModelSpecification))


def train_models(
    workplace: Workplace, runs: Sequence[LanguageModelSpecification], executor: Executor
) -> PlayedRuns:
    """Train runs with the recipes that their registration fixes, each on a GPU if there is one."""
    if launched_together() > 1:
        raise UsageError(
            "one command sends the runs of a study to whoever trains them",
            found=f"{launched_together()} processes that were launched together",
            remedy="one run on several GPUs: accelerate launch … -m toolkit train --study … --run …; this "
            "command by itself then keeps it",
        )
    gpus = executor.gpus()
    cpu = not gpus and all(goes_without_gpu(recipe_of(run).engine.kind) for run in runs)
    for run in runs:
        check_stack(recipe_of(run), cpu=cpu, say=executor.say, has_gpu=gpus > 0)
    jobs = [TrainJob(run, recipe_of(run).model, workplace.folder, cpu) for run in runs]
    return train_runs(jobs, executor if cpu else executor.on_gpus(ANEW))


def train_runs(jobs: Sequence[TrainJob], executor: Executor = HERE) -> PlayedRuns:
    """Train runs to their ends, from wherever they were left; whoever trains a run holds it."""
    for job in jobs:
        check_model(job.specification, job.model)

    complete = [Workplace(job.folder).run(job.specification).is_complete for job in jobs]
    alone = executor.is_this_process(complete.count(False))

    def kept(job: TrainJob) -> bool | None:
        if not complete[jobs.index(job)]:
            return None
        train(job)  # what is complete is examined
        return True

    perform = partial(train, say=executor.say) if alone else train
    _, before = go_on(executor, jobs, perform, kept=kept, keep=lambda _, done: done)
    names = [job.subject for job in before]
    return PlayedRuns(tuple(names), tuple(sorted(job.subject for job in jobs if job.subject not in names)))


def train(job: TrainJob, say: Say = lambda _: None) -> bool:
    """Do a job; return whether there was anything to do."""
    return language_model_run.train_run(
        job.specification, model_path(job.model), job.folder, cpu=job.cpu, report_to=job.report_to, say=say
    )


def with_recipe(run: Specification, recipe: Recipe) -> LanguageModelSpecification:
    """Return a run with a recipe; where its registration fixes one, it is that."""
    if not isinstance(run, LanguageModelSpecification):
        matrix.check_agreement(recipe, run, run.study)
        commit = model_commit(model_path(recipe.model), recipe.revision or None)
        return specify_language_model(run, recipe, commit)
    if recipe_of(run) != recipe:
        raise UsageError(
            f"{run.study} fixes another recipe for {run.run_id}",
            expected=f"{recipe_of(run).name}, SHA-256 {recipe_of(run).sha256()}",
            found=f"{recipe.name}, SHA-256 {recipe.sha256()}",
            remedy="leave --recipe, --model and --set out",
        )
    return run


def check_model(specification: LanguageModelSpecification, model: str) -> None:
    """Check that a model is the one that a run was specified to start from."""
    commit = model_commit(model_path(model), recipe_of(specification).revision or None)
    if commit != specification.model_commit:
        problem = f"{specification.run_id} starts from another model"
        expected = f"{recipe_of(specification).model} at {specification.model_commit}"
        remedy = "take the model that is registered, or register a study of this one"
        raise UsageError(problem, expected=expected, found=f"{model} at {commit}", remedy=remedy)


def check_stack(recipe: Recipe, *, cpu: bool, say: Say, has_gpu: bool) -> None:
    """Check that training can start: its packages, and a GPU unless it goes without."""
    kind = recipe.engine.kind
    if cpu and not goes_without_gpu(kind):
        raise UsageError(
            "the recipe's engine generates on a GPU",
            expected="transformers, or a vLLM that is built for processors",
            found=f"engine.kind = {kind!r}, and --cpu",
            remedy="without a GPU: --cpu --set engine.kind=transformers",
        )
    has_kernels = not cpu and loading.DISTRIBUTION in recipe.packages
    needed = (*PACKAGES, *["vllm"] * (kind == "vllm"), *[loading.DISTRIBUTION] * has_kernels)
    versions = {name: installed(name) for name in needed}
    missing = [name for name, found in versions.items() if found is None]
    if missing:
        extra = "gpu" if has_kernels else EXTRAS[kind]
        problem = "training a language model needs packages that are not installed"
        expected = ", ".join(needed)
        remedy = f'pip install "paired-rollouts-toolkit[{extra}]"; for the plan alone: --dry-run'
        raise UsageError(problem, expected=expected, found=f"without {', '.join(missing)}", remedy=remedy)
    for name, found in versions.items():
        pinned = recipe.packages.get(name)
        if pinned and found and found.partition("+")[0] != pinned:
            say(f"{name} {found} is installed; the recipe was written for {pinned}")
    if not cpu and not has_gpu:
        raise UsageError(
            "there is no GPU",
            expected="an accelerator that PyTorch sees",
            remedy="for the plan alone: --dry-run; for a model that a processor can train: "
            "--cpu --set engine.kind=transformers",
        )
    if has_kernels and visible_gpus():  # without one here, whoever trains finds out
        loading.check_importable(f"recipe {recipe.name}")


def goes_without_gpu(engine: str) -> bool:
    """Return whether an engine, of the kind that a recipe names, generates on a processor here."""
    return engine == "transformers" or (installed("vllm") or "").endswith(FOR_PROCESSORS)


ROOT = "try"
"""What the seeds derive from: a registered run's root begins with its study's name and has its anchor."""


class TriedStep(Document, frozen=True):
    """A step that was tried."""

    step: Annotated[int, about("From 1.")]
    seconds: Annotated[float, about("Its duration, rollouts included.")]
    success: Annotated[float, about("Share of its rollouts that truly succeeded.")]
    constant: Annotated[float, about("Share of its groups whose rewards were all alike.")]
    tokens: Annotated[int, about("That the loss counted.")]
    figures: Annotated[dict[str, float | None], about("What the trainer says of it.")]
    generation: Annotated[float | None, about("Seconds that went to playing the rollouts.")]


class Trial(Document, frozen=True):
    """Some steps that were trained and thrown away: with --try."""

    run_id: Annotated[str, about("The run whose place in the matrix it had.")]
    recipe_sha256: Annotated[str, about("Of the recipe's canonical document.")]
    coordinates: Annotated[int, about("Numbers in the adapter.")]
    stack: Annotated[str, about("Packages and their versions.")]
    accelerator: Annotated[str | None, about("Names of the GPUs; null without one.")]
    processes: Annotated[int, about("How many trained together.")]
    kernels: Annotated[str | None, about("What computed linear attention.")]
    steps: list[TriedStep]
    seconds_per_step: Annotated[float, about("Mean; the first is left out where there are more.")]
    peak_gpu_bytes: Annotated[int | None, about("Most that PyTorch held; null without a GPU.")]


def shortened(run: Specification, recipe: Recipe, steps: int) -> LanguageModelSpecification:
    """Return a run of some steps in the place of a registered one, with the sizes of a recipe."""
    document = recipe.document()
    document["step"] |= {"steps": steps, "checkpoint_every": steps}
    document["optimizer"]["warmup_steps"] = min(recipe.optimizer.warmup_steps, steps)
    plain = Specification(**{name: getattr(run, name) for name in Specification.__struct_fields__})
    tried = replace(
        plain,
        root=f"{ROOT} {run.run_id}",
        condition=f"{ROOT} {run.condition}",  # what schedules in the published study's world derive from
        steps=steps,
        prompts_per_step=recipe.step.prompts,
        group_size=recipe.step.rollouts,
        diagnosed=(),
        pools={},
    )
    return specify_language_model(tried, read_recipe(document, recipe.name), "")


def try_steps(run: Specification, recipe: Recipe, steps: int, *, cpu: bool, say: Say) -> Trial:
    """Train some steps, and keep nothing."""
    import torch

    specification = shortened(run, recipe, steps)
    groups: list[Row] = []
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        session = open_session(
            specification,
            model_path(recipe.model),
            Path(scratch),
            record=groups.extend,
            moments=Moments(lambda _: None, lambda _: ends.append(time.monotonic()), lambda *_: None),
            cpu=cpu,
        )
        check_capacity(specification, session.coordinates)
        session.trainer.told = Pace(say)
        begun = time.monotonic()
        session.train(None)
    has_gpu = torch.cuda.is_available() and not cpu
    steps_tried = [
        _tried(number, end - before, groups, session.trainer.state.log_history)
        for number, (before, end) in enumerate(zip([begun, *ends], ends, strict=False), start=1)
    ]
    return Trial(
        run_id=run.run_id,
        recipe_sha256=session.recipe.sha256(),
        coordinates=session.coordinates,
        **stack(),
        kernels=session.kernels,
        steps=steps_tried,
        seconds_per_step=seconds_per_step([step.seconds for step in steps_tried]),
        peak_gpu_bytes=torch.cuda.max_memory_allocated() if has_gpu else None,
    )


def seconds_per_step(seconds: Sequence[float]) -> float:
    """Return the mean duration of steps; the first, which warms up, is left out where there are more."""
    later = seconds[1:] or seconds
    return sum(later) / len(later)


def _tried(number: int, seconds: float, groups: list[Row], log: list[dict[str, Any]]) -> TriedStep:
    own = [group for group in groups if group["step"] == number]
    outcomes = [outcome for group in own for outcome in group["true_successes"]]
    logged = next((entry for entry in log if entry.get("step") == number and "loss" in entry), {})
    return TriedStep(
        step=number,
        seconds=seconds,
        success=sum(outcomes) / len(outcomes),
        constant=sum(group["zero_variance"] for group in own) / len(own),
        tokens=sum(sum(group["tokens"]) for group in own),
        figures=step_figures(logged),
        generation=logged.get(GENERATION_TIME),
    )
