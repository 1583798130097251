"""Executors, and what is told where the one that was asked for is not to be had."""

import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children
from typing import Any

import pytest

from tests.unit.lab.study.executors import sums
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.lab.executors import executor as executor_module
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.training.devices import ANEW, KEPT

TWO = Executor(places=2)
BOTH = pytest.mark.parametrize("executor", [HERE, TWO], ids=["here", "two processes"])


@BOTH
def test_each_job_comes_with_its_answer(executor: Executor) -> None:
    assert {job.subject: answer for job, answer in executor.each_done(sums.JOBS, sums.add)} == sums.SUMS


@BOTH
def test_an_error_of_the_toolkit_comes_back_as_itself(executor: Executor) -> None:
    with pytest.raises(VerificationError) as error:
        list(executor.each_done(sums.TWICE, sums.refuse))
    assert error.value.where == "set 0, its sum: here"
    assert error.value.remedy == "add again"


@BOTH
def test_a_defect_is_told_with_its_job(executor: Executor) -> None:
    with pytest.raises(DamagedError, match="set 0 could not be played") as error:
        list(executor.each_done(sums.TWICE, sums.fail))
    assert error.value.found == "ZeroDivisionError: nothing to divide"
    assert "sums.py, line" in str(error.value.where)


def test_a_process_that_was_killed_is_told() -> None:
    with pytest.raises(IncompleteError, match="a process ended") as error:
        list(TWO.each_done(sums.TWICE, sums.die))
    assert "exit code 9" in str(error.value)


def test_an_interrupt_while_a_job_is_sent_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    submit = ProcessPoolExecutor.submit

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return submit(*arguments)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        list(TWO.each_done(sums.JOBS, sums.add))
    signal.signal(signal.SIGINT, before)


def test_processes_without_work_end_by_themselves() -> None:
    before = set(active_children())
    answers = TWO.each_done(sums.JOBS, sums.add)
    next(answers)
    workers = set(active_children()) - before
    assert dict(answers)
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_no_job_starts_nothing() -> None:
    assert list(Executor("ray", address="nowhere:1").each_done((), sums.add)) == []


def test_no_more_places_are_taken_than_there_are_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.lab.executors.executor.Workers", None)
    assert list(TWO.each_done(sums.JOBS[4:], sums.add)) == [(sums.JOBS[4], 6)]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process see two GPUs of a machine that has more."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5")
    monkeypatch.setattr(executor_module, "visible_gpus", lambda: ("3", "GPU-5"))


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("gpu", "processes", "places"), [(KEPT, 2, None), (KEPT, 2, 4), (ANEW, len(sums.JOBS), 2)]
)
def test_each_process_has_one_gpu_and_no_gpu_has_two(gpu: str, processes: int, places: int | None) -> None:
    seen = [answer for _, answer in Executor(places=places).on_gpus(gpu).each_done(sums.JOBS, sums.see)]
    assert len({process for _, process in seen}) == len(set(seen)) == processes
    assert {name for name, _ in seen} == {"3", "GPU-5"}


@pytest.mark.usefixtures("gpus")
def test_jobs_that_take_no_gpu_are_told_of_what_this_process_sees() -> None:
    seen = dict(answer for _, answer in TWO.each_done(sums.JOBS, sums.see))
    assert seen.keys().isdisjoint({None})
    assert set(seen) == {"3,GPU-5"}


@pytest.mark.usefixtures("gpus")
def test_a_job_that_wants_a_gpu_to_itself_is_done_here_only_where_there_is_one(monkeypatch) -> None:
    trains, evaluates = HERE.on_gpus(ANEW), HERE.on_gpus(KEPT)
    assert not trains.is_this_process(1)
    assert evaluates.is_this_process(2)
    monkeypatch.setattr(executor_module, "visible_gpus", lambda: ("3",))
    assert trains.is_this_process(1)
    assert not trains.is_this_process(2)
    monkeypatch.setattr(executor_module, "visible_gpus", tuple)
    assert HERE.on_gpus(ANEW) == HERE


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("gpu", [ANEW, KEPT])
def test_a_process_with_a_gpu_that_was_killed_is_told(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code is told, too, where the pool's thread is slow to note it."""
    exit_code = os.waitstatus_to_exitcode

    def slow(status: int) -> int:
        time.sleep(0.3)
        return exit_code(status)

    monkeypatch.setattr(os, "waitstatus_to_exitcode", slow)
    with pytest.raises(IncompleteError, match="a process ended") as error:
        list(TWO.on_gpus(gpu).each_done(sums.TWICE, sums.die))
    assert "exit code 9" in str(error.value)
    assert not active_children()


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(IncompleteError, match="needs the package ray") as error:
        list(Executor("ray").each_done(sums.JOBS, sums.add))
    assert "pip install 'paired-rollouts-toolkit[ray]'" in str(error.value)
