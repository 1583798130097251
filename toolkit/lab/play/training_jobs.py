"""Training the language models of a matrix: each run is a job, in whatever place there is.

A job writes in its run's folder itself, as it goes: a checkpoint is too large to be sent, and a run too long
to be kept until its end. Places on several machines therefore share the study's folder.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.lab.executors.executor import HERE, Executor, Say
from toolkit.lab.executors.folder import go_on
from toolkit.lab.play import language_model_run, matrix
from toolkit.lab.play.workplace import PlayedRuns, Workplace
from toolkit.lab.policies.language_model import kernels
from toolkit.lab.policies.language_model.loading import FOR_PROCESSORS, installed, model_path
from toolkit.lab.policies.language_model.opening import model_commit
from toolkit.lab.training.devices import ANEW, launched_together, visible_gpus
from toolkit.lab.training.recipe import Recipe, recipe_of, specify_language_model
from toolkit.specification import LanguageModelSpecification, Specification

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
        job.specification,
        model_path(job.model),
        job.folder,
        cpu=job.cpu,
        report_to=job.report_to,
        say=say,
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
        raise UsageError(
            f"{specification.run_id} starts from another model",
            expected=f"{recipe_of(specification).model} at {specification.model_commit}",
            found=f"{model} at {commit}",
            remedy="take the model that is registered, or register a study of this one",
        )


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
    has_kernels = not cpu and kernels.DISTRIBUTION in recipe.packages
    needed = (*PACKAGES, *["vllm"] * (kind == "vllm"), *[kernels.DISTRIBUTION] * has_kernels)
    versions = {name: installed(name) for name in needed}
    missing = [name for name, found in versions.items() if found is None]
    if missing:
        extra = "gpu" if has_kernels else EXTRAS[kind]
        raise UsageError(
            "training a language model needs packages that are not installed",
            expected=", ".join(needed),
            found=f"without {', '.join(missing)}",
            remedy=f'pip install "paired-rollouts-toolkit[{extra}]"; for the plan alone: --dry-run',
        )
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
        kernels.check_importable(f"recipe {recipe.name}")


def goes_without_gpu(engine: str) -> bool:
    """Return whether an engine, of the kind that a recipe names, generates on a processor here."""
    return engine == "transformers" or (installed("vllm") or "").endswith(FOR_PROCESSORS)
