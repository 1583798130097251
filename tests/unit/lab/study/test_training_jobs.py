"""Where a study's language models are trained: each on a GPU of its own, or without any. No GPU is here."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.stack import require_trainer
from toolkit.errors import UsageError
from toolkit.lab.executors import executor as executor_module
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.play import language_model_run, training_jobs
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.training import devices
from toolkit.lab.training.recipe import recipe_of
from toolkit.specification import LanguageModelSpecification


@pytest.fixture
def run() -> LanguageModelSpecification:
    require_trainer()
    from tests.unit.lab.training.language_model.small_model import specified

    return specified("a-folder")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, bool]]:
    """Return, of each job that would be done, what its executor does about GPUs, and whether it has none."""
    jobs: list[tuple[str | None, bool]] = []

    def each_step(self: Executor, work: deque[int], next_job: Any, _: object) -> Iterator[tuple[int, bool]]:
        for number in work:
            jobs.append((self.gpu, next_job(number).cpu))
            yield number, True

    monkeypatch.setattr(Executor, "each_step", each_step)
    monkeypatch.setattr(training_jobs, "check_model", lambda *_: None)
    return jobs


@pytest.mark.parametrize(("gpus", "expected"), [(("0", "1"), ("anew", False)), ((), (None, True))])
def test_each_run_is_trained_on_a_gpu_where_there_is_one(
    run: LanguageModelSpecification,
    sent: list[tuple[str | None, bool]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    gpus: tuple[str, ...],
    expected: tuple[str | None, bool],
) -> None:
    monkeypatch.setattr(executor_module, "visible_gpus", lambda: gpus)
    monkeypatch.setattr(training_jobs.kernels, "check_importable", lambda _: None)
    monkeypatch.setattr(training_jobs, "installed", recipe_of(run).packages.get)
    training_jobs.train_models(Workplace(tmp_path), [run], HERE)
    assert sent == [expected]


def test_a_study_s_runs_are_not_sent_by_several_processes(run, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="one command sends the runs") as error:
        training_jobs.train_models(Workplace(tmp_path), [run], HERE)
    assert "-m toolkit train" in str(error.value.remedy)


def test_a_run_in_a_process_that_sees_several_gpus_begins_nothing(run, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(devices, "visible_gpus", lambda: ("0", "1"))
    with pytest.raises(UsageError, match="c2-paired-s3 would be trained in a process that sees several"):
        language_model_run.train_run(run, "a-folder", tmp_path)
    assert not list(tmp_path.iterdir())
