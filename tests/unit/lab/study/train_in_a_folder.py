"""`python -m tests.unit.lab.study.train_in_a_folder FOLDER MODEL [STEP]`: a model's run, to be killed.

Its rollouts say what is scripted, so that there is something to learn; its evaluations are its own. It kills
itself, without a chance to tidy up, once it has said that it played a step; without a STEP it lives. The
model `small`, which can work, samples all by itself.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.training.language_model.scripts import MIXED, ScriptedModel, by_place
from tests.unit.lab.training.language_model.small_model import specified
from toolkit.lab.evaluation import sets
from toolkit.lab.play import language_model_run
from toolkit.lab.play.training_jobs import TrainJob
from toolkit.lab.policies.language_model.loading import model_path
from toolkit.lab.policies.language_model.lockstep import LocalEngine, speak
from toolkit.lab.training.language_model import session
from toolkit.specification import LanguageModelSpecification

STEPS = 4
SETTINGS = (f"step.steps={STEPS}", "step.checkpoint_every=2", "step.prompts=1", "step.micro_batch=4")
SHORT = 12


def specification(model: str, settings: tuple[str, ...] = (), **changed: Any) -> LanguageModelSpecification:
    """Return a run of four steps, with a checkpoint in between."""
    return specified(model, (*SETTINGS, *settings), battery="small", **changed)


OWN = (
    "step.steps=1",
    "step.checkpoint_every=1",
    "sampling.max_completion_tokens=512",
    "sampling.context=4096",
)


@contextmanager
def briefly() -> Iterator[None]:
    """Have runs evaluated on a task a set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sets.SIZES, "small", sets.Sizes(1, 1, 1, 1))
        yield


@contextmanager
def scripted() -> Iterator[None]:
    """Have trainers say what is scripted, and evaluate in a few words."""
    from toolkit.lab.training.language_model import trainer as module

    opened = session.open_session

    def open_session(run: LanguageModelSpecification, *arguments: Any, **options: Any) -> Any:
        found = opened(run, *arguments, **options)
        chat = found.trainer.chat
        find = by_place(chat.tokenizer, run, MIXED)

        def say(model: Any, *given: Any, **how: Any) -> Any:
            context = model.config.get_text_config().max_position_embeddings
            parts = [find(row) for row in found.trainer._rows]  # noqa: SLF001
            return speak(ScriptedModel(chat.tokenizer, parts, context), *given, **how)

        patch.setattr(module, "speak", say)
        return found

    def engine(model: Any, chat: Any, **options: Any) -> LocalEngine:
        return LocalEngine(model, chat, **{**options, "max_tokens": SHORT})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language_model_run, "open_session", open_session)
        patch.setattr(session, "LocalEngine", engine)
        yield


def train(folder: Path, model: str, say: Callable[[str], None] = lambda _: None, **changed: Any) -> bool:
    """Train the run; return whether anything was left to do."""
    with briefly(), scripted():
        return language_model_run.train_run(specification(model, **changed), model, folder, cpu=True, say=say)


def train_small(folder: Path) -> bool:
    """Train the model that comes with the package for a step, on what it says itself."""
    model = model_path("small")
    run = specified(model, OWN, battery="small")
    with briefly():
        return language_model_run.train_run(run, model, folder, cpu=True)


def train_and_die_once(job: TrainJob, mark: Path, run_id: str) -> str | None:
    """Train a job's run, and end the process once, in the third step of a run; return its GPU."""

    def die(said: str) -> None:
        if job.subject == run_id and said.startswith("step 3 of") and not mark.exists():
            mark.touch()
            os._exit(9)

    with briefly(), scripted():
        language_model_run.train_run(job.specification, job.model, job.folder, cpu=job.cpu, say=die)
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def main(folder: str, model: str, step: str = "") -> None:
    def die(said: str) -> None:
        if step and said.startswith(f"step {step} of"):
            os.kill(os.getpid(), signal.SIGKILL)

    if model == "small":
        train_small(Path(folder))
    else:
        train(Path(folder), model, die)


if __name__ == "__main__":
    main(*sys.argv[1:])
