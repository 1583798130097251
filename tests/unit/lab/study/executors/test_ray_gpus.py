"""Ray gives each job on a GPU one of its own. The GPUs are none: Ray is told that there are two."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, SMALL_MODEL, snapshot
from tests.unit.lab.study.executors import sums
from tests.unit.lab.study.test_language_model_run import FILES, RUN, attempts
from tests.unit.stack import require_ray, require_stack, require_trainer
from toolkit.lab.executors.executor import Executor
from toolkit.lab.executors.places import environment
from toolkit.lab.executors.ray_connection import SETTINGS, STORE_BYTES
from toolkit.lab.executors.ray_tasks import RayTasks
from toolkit.lab.training.devices import ANEW, KEPT

require_ray()

pytestmark = pytest.mark.slow
RAY = Executor("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Start Ray once, with two GPUs; the executors of this process use it without being told."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (CHECKOUT, SMALL_MODEL))))
        with environment(SETTINGS):
            options: dict[str, Any] = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
            ray.init("local", num_cpus=4, num_gpus=2, log_to_driver=False, **options)
        yield
        ray.shutdown()


@pytest.mark.parametrize(("gpu", "processes"), [(KEPT, 2), (ANEW, len(sums.JOBS))])
def test_each_process_has_one_gpu_and_no_gpu_has_two(gpu: str, processes: int) -> None:
    assert RAY.gpus() == 2
    seen = [answer for _, answer in RAY.on_gpus(gpu).each_done(sums.JOBS, sums.see)]
    assert len({process for _, process in seen}) == len(set(seen)) == processes
    assert {name for name, _ in seen} == {"0", "1"}


def test_jobs_that_take_no_gpu_are_told_of_none() -> None:
    assert {name for _, (name, _) in RAY.each_done(sums.JOBS, sums.see)} == {None}


@pytest.mark.parametrize("gpu", [ANEW, KEPT])
def test_a_process_with_a_gpu_that_was_lost_is_begun_again(gpu: str, tmp_path: Path) -> None:
    messages: list[str] = []
    executor = replace(RAY, say=messages.append).on_gpus(gpu)
    answers = executor.each_done(sums.JOBS, partial(sums.die_once, mark=tmp_path / "died"))
    assert {job.subject: answer for job, answer in answers} == sums.SUMS
    assert ["loss 1 of at most 3" in message for message in messages] == [True]


def test_gpus_are_given_back_when_jobs_are_done_whoever_still_knows_who_did_them(monkeypatch) -> None:
    import ray

    known: list[Any] = []
    opened = RayTasks.__init__

    def kept(self: Any, *arguments: Any) -> None:
        known.append(self)
        opened(self, *arguments)

    monkeypatch.setattr(RayTasks, "__init__", kept)
    assert len(list(RAY.on_gpus(KEPT).each_done(sums.JOBS, sums.see))) == len(sums.JOBS)
    until = time.monotonic() + 30
    while ray.available_resources().get("GPU") != 2 and time.monotonic() < until:
        time.sleep(0.2)
    assert ray.available_resources().get("GPU") == 2


def test_an_evaluation_has_a_gpu_a_process_and_the_same_bytes(toolkit, tmp_path, monkeypatch) -> None:
    require_stack()
    taken: list[str | None] = []
    each_step = Executor.each_step

    def noted(self: Executor, *arguments: Any) -> Any:
        taken.append(self.gpu)
        return each_step(self, *arguments)

    monkeypatch.setattr(Executor, "each_step", noted)
    few = ("--model", "small", "--sets", "clean", "--tasks", 65, "--schedules", 1, "--max-tokens", 8)
    for executor in ("ray", "local"):
        result = toolkit("evaluate", *few, "--executor", executor, "--out", tmp_path / executor, "--json")
        assert result.code == 0, result.err
    assert snapshot(tmp_path / "ray") == snapshot(tmp_path / "local")
    assert taken == [KEPT, None]


def test_runs_are_trained_each_on_a_gpu_and_what_died_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    require_trainer()
    from tests.unit.lab.study import train_in_a_folder as trained
    from tests.unit.lab.training.language_model.small_model import a_tokenizer, saved
    from toolkit.lab.play.training_jobs import TrainJob

    model = saved(tmp_path / "model", a_tokenizer())
    other = RUN.replace("s3", "s4")
    runs = [trained.specification(model, run_id=run, seed=int(run[-1])) for run in (RUN, other)]
    jobs = [TrainJob(run, model, tmp_path / "ray", cpu=True) for run in runs]
    messages: list[str] = []
    executor = replace(RAY, say=messages.append).on_gpus(ANEW)
    perform = partial(trained.train_and_die_once, mark=tmp_path / "died", run_id=RUN)
    seen = {job.subject: answer for job, answer in executor.each_done(jobs, perform)}
    assert set(seen.values()) == {"0", "1"}
    (message,) = messages
    assert message.startswith(f"{RUN}, its training: its process was lost, and it is sent again")
    assert [attempt["from_step"] for attempt in attempts(tmp_path / "ray" / RUN)] == [0, 2]
    assert trained.train(tmp_path / "alone", model)
    for name in FILES:
        assert (tmp_path / "ray" / RUN / name).read_bytes() == (tmp_path / "alone" / RUN / name).read_bytes()
    assert (tmp_path / "ray" / other / "COMPLETE.json").is_file()
