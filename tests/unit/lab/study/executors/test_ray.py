"""Ray does what local processes do: the same bytes, whatever happens to its processes on the way.

The GPUs are none: Ray is told that there are two.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, SMALL_MODEL, snapshot
from tests.unit.lab.study import fake_play
from tests.unit.lab.study.executors import sums
from tests.unit.lab.study.test_language_model_run import FILES, RUN, attempts
from tests.unit.stack import require_ray, require_stack, require_trainer
from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.executors.on_ray import SETTINGS, STORE_BYTES, RayTasks
from toolkit.lab.executors.places import environment
from toolkit.lab.play.runner import play_runs
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.training.devices import ANEW, KEPT
from toolkit.structs import replace

require_ray()

pytestmark = pytest.mark.slow
RAY = Executor("ray", 2)
SUMS = "tests.unit.lab.study.executors.sums"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    """Start Ray once, with two GPUs, and give its address; executors here use it without being told."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (CHECKOUT, SMALL_MODEL))))
        with environment(SETTINGS):
            options: dict[str, Any] = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
            ray.init("local", num_cpus=4, num_gpus=2, log_to_driver=False, **options)
        yield ray.get_runtime_context().gcs_address
        ray.shutdown()


def command(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", *arguments], cwd=CHECKOUT, **pipes, **options)


@pytest.mark.parametrize(("gpu", "processes"), [(KEPT, 2), (ANEW, len(sums.JOBS))])
def test_each_process_has_one_gpu_and_no_gpu_has_two(gpu: str, processes: int) -> None:
    assert RAY.gpus() == 2
    seen = [answer for _, answer in RAY.on_gpus(gpu).each_done(sums.JOBS, sums.see)]
    assert len({process for _, process in seen}) == len(set(seen)) == processes
    assert {name for name, _ in seen} == {"0", "1"}


def test_jobs_that_take_no_gpu_are_told_of_none() -> None:
    assert {name for _, (name, _) in RAY.each_done(sums.JOBS, sums.see)} == {None}


@pytest.mark.parametrize("gpu", [None, ANEW, KEPT])
def test_a_process_that_was_lost_is_begun_again(gpu: str | None, tmp_path: Path) -> None:
    messages: list[str] = []
    executor = replace(RAY, say=messages.append, gpu=gpu)
    answers = executor.each_done(sums.JOBS, partial(sums.die_once, mark=tmp_path / "died"))
    assert {job.subject: answer for job, answer in answers} == sums.SUMS
    said = "its process was lost, and it is sent again (loss 1 of at most 3"
    # Ray may have handed the process a second job by then, which is lost with it.
    assert {said in message for message in messages} == {True}


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


def test_a_job_that_always_loses_its_process_is_given_up() -> None:
    messages: list[str] = []
    with pytest.raises(IncompleteError, match="lost its process again and again") as error:
        list(replace(RAY, say=messages.append).each_done(sums.JOBS[:1], sums.die))
    assert len(messages) == 3
    assert error.value.where == "set 0, its sum"


def test_another_version_of_the_package_on_a_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.__version__", "9.9.9")
    with pytest.raises(UsageError, match="another version of this package") as error:
        list(RAY.each_done(sums.JOBS[:1], sums.add))
    assert error.value.expected == "9.9.9"


def test_what_a_machine_cannot_import_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("def add(job):\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # type: ignore[import-not-found]

    with pytest.raises(IncompleteError, match="Ray could not do a job") as error:
        list(RAY.each_done(sums.JOBS[:1], only_here.add))
    assert "only_here" in str(error.value.found)
    assert "on every machine" in str(error.value.remedy)


def test_a_cluster_is_worked_on_by_its_address_and_says_nothing_but_what_was_lost(cluster, tmp_path) -> None:
    out, err = command(SUMS, cluster, str(tmp_path / "died")).communicate(timeout=60)
    assert dict(map(json.loads, out.splitlines())) == sums.SUMS
    assert re.fullmatch(r"set \d, its sum: its process was lost, and it is sent again \(.*\)\n", err)


def test_a_cluster_of_another_version_of_ray_is_refused(cluster: str, tmp_path: Path) -> None:
    out, _ = command(SUMS, cluster, str(tmp_path / "died"), "2.0.0").communicate(timeout=60)
    assert out.startswith("3 the Ray cluster is of another version")
    assert "Ray: 2.0.0" in out


def test_an_address_that_nobody_answers_at_is_incomplete() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(IncompleteError, match="no Ray cluster answers") as error:
        list(Executor("ray", 2, address).each_done(sums.JOBS, sums.add))
    assert error.value.where == address


@pytest.mark.parametrize("address", ["nowhere", "ray://127.0.0.1:10001", "127.0.0.1:six", ":6379"])
def test_what_is_no_address_is_wrong_usage(address: str) -> None:
    with pytest.raises(UsageError, match="no address of a Ray cluster"):
        list(Executor("ray", 2, address).each_done(sums.JOBS, sums.add))


def test_an_interrupt_ends_a_ray_started_for_one_command_and_loses_nothing(tmp_path: Path) -> None:
    play = ("tests.unit.lab.study.play_in_a_folder", str(tmp_path / "ray"), "60", "2", "ray")
    how: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with command(*play, start_new_session=True, **how) as runner:
        while not list(tmp_path.glob("ray/*/segment-000")) and runner.poll() is None:
            time.sleep(0.01)
        os.killpg(runner.pid, signal.SIGINT)
        # Ray's processes share the pipes, which end when the last of them does.
        out, err = runner.communicate(timeout=30)
    assert out == ""
    assert err.startswith("Traceback")
    assert err.count("KeyboardInterrupt") == 1
    assert not list(tmp_path.rglob("*.part"))
    run = fake_play.specification("c2-paired-s0")
    workplace = Workplace(tmp_path / "ray")
    with workplace.held([run]):
        play_runs(workplace, [run], HERE, play=fake_play.sparsely)
    assert workplace.run(run).is_complete
