"""Training the language models of a matrix: each run is a job, in whatever place there is.

A job writes in its run's folder itself, as it goes: a checkpoint is too large to be sent, and a run too long
to be kept until its end. Places on several machines therefore share the study's folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import UsageError
from toolkit.policies.language_model.loading import model_path
from toolkit.policies.language_model.opening import model_commit
from toolkit.study.executors.where import each_done
from toolkit.study.play.language_model_run import train_run
from toolkit.study.play.runner import Played, Tick
from toolkit.study.play.workplace import Workplace
from toolkit.training.specification import LanguageModelSpecification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from toolkit.study.executors.where import Where
    from toolkit.training.specification import Specification


@dataclass(frozen=True)
class TrainJob:
    """Train a run.

    Args:
        specification: the run.
        model: folder or name of the model that it starts from.
        folder: the study's folder.
        cpu: whether to train without a GPU.
    """

    specification: LanguageModelSpecification
    model: str
    folder: Path
    cpu: bool

    @property
    def subject(self) -> str:
        """What the job is about."""
        return self.specification.run_id

    def __str__(self) -> str:
        return f"{self.subject}, its training"


def language_models(specifications: Iterable[Specification]) -> tuple[LanguageModelSpecification, ...]:
    """Return the runs among these that train language models."""
    return tuple(one for one in specifications if isinstance(one, LanguageModelSpecification))


def train_runs(
    jobs: Sequence[TrainJob],
    where: Where,
    *,
    watch: Callable[[Tick], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Played:
    """Train runs to their ends, from wherever they were left.

    Args:
        jobs: the runs.
        where: where to train them; in this process, what they say is told as they go.
        watch: told whenever a run is complete.
        say: told what happens.

    Raises:
        UsageError: a run starts from another model than the one that is here; as `train_run`.
        IncompleteError, DamagedError: as `train_run`.
    """
    for job in jobs:
        check_model(job.specification, job.model)
    complete = [job for job in jobs if Workplace(job.folder).run(job.specification).is_complete]
    left = [job for job in jobs if job not in complete]
    for job in complete:
        train(job)
    watch(Tick(len(complete), len(jobs), "what is there was checked"))
    done: list[str] = []
    alone = where.kind == "local" and (where.places == 1 or len(left) == 1)
    answers = ((job, train(job, say)) for job in left) if alone else each_done(left, where, train, say=say)
    for job, _ in answers:
        done.append(job.subject)
        watch(Tick(len(complete) + len(done), len(jobs), job.subject))
    return Played(tuple(job.subject for job in complete), tuple(sorted(done)))


def train(job: TrainJob, say: Callable[[str], None] = lambda _: None) -> bool:
    """Do a job; return whether there was anything to do."""
    return train_run(job.specification, model_path(job.model), job.folder, cpu=job.cpu, say=say)


def check_model(specification: LanguageModelSpecification, model: str) -> None:
    """Check that a model is the one that a run was specified to start from.

    Raises:
        UsageError: it is another one, or there is none.
    """
    revision = specification.settings.revision or None
    found = model_commit(model_path(model), revision)
    if found != specification.model_commit:
        raise UsageError(
            f"{specification.run_id} starts from another model",
            expected=f"{specification.settings.model} at {specification.model_commit}",
            found=f"{model} at {found}",
            remedy="take the model that is registered, or register a study of this one",
        )
