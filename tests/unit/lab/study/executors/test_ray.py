"""Ray does what local processes do: the same bytes, whatever happens to its processes on the way."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Result, snapshot
from tests.small_home import small_home
from tests.unit.lab.study import fake_play, test_probing
from tests.unit.lab.study.executors import sums
from tests.unit.stack import require_ray
from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.executors.executor import HERE, Executor
from toolkit.lab.executors.ray_connection import connected
from toolkit.lab.play.runner import play_runs
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.probing.run import probe_all, probe_jobs

require_ray()

pytestmark = pytest.mark.slow
RAY = Executor("ray", 2)
SUMS = "tests.unit.lab.study.executors.sums"
RUNS = tuple(fake_play.specification(f"c2-paired-s{seed}", seed=seed) for seed in range(2))


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    """Start Ray once, and give its address; the executors of this process use it without being told."""
    import ray

    with connected(None, 2):
        yield ray.get_runtime_context().gcs_address


def played(folder: Path, play: Any, executor: Executor = RAY) -> dict[str, bytes]:
    """Play two runs, and return what does not differ by nature from launch to launch."""
    workplace = Workplace(folder)
    with workplace.held(RUNS):
        play_runs(workplace, RUNS, executor, play=play)
    return {name: raw for name, raw in snapshot(folder).items() if "/attempt-" not in name}


def command(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_a_study_s_registers_have_the_same_manifest_hash(toolkit, tmp_path, monkeypatch) -> None:
    small_home(tmp_path, monkeypatch)
    hashes = []
    for executor in ("local", "ray"):
        options = ("--folder", tmp_path / executor, "--into", tmp_path / f"{executor}-registers", "--json")
        chosen = ("--run", "c4-*-none-s0", "--processes", 2, "--executor", executor)
        result = toolkit("study", "run", "small", *chosen, *options)
        assert result.code == 0, result.err
        hashes.append(result.json()["registers"]["logical_sha256"])
    assert hashes[0] == hashes[1]


def test_a_probe_has_the_same_bytes(tmp_path: Path) -> None:
    runs = [test_probing.specification(run) for run in test_probing.RUNS]
    jobs = probe_jobs(test_probing.DESIGN, runs, {r.run_id: test_probing.checkpoints(r.run_id) for r in runs})
    for executor in (HERE, RAY):
        probe_all(tmp_path / executor.kind, jobs, executor)
    assert snapshot(tmp_path / "ray") == snapshot(tmp_path / "local")


def test_an_evaluation_has_the_same_bytes(toolkit: Callable[..., Result], tmp_path: Path) -> None:
    few = ("--model", "careless", "--sets", "clean,faults_p025", "--tasks", 65, "--schedules", 1)
    for executor in ("local", "ray"):
        where = ("--executor", executor, "--processes", 2, "--out", tmp_path / executor)
        result = toolkit("evaluate", *few, "--no-luck-share", *where, "--json")
        assert result.code == 0, result.err
    toolkit("evaluate", *few, "--no-luck-share", "--out", tmp_path / "alone")
    assert snapshot(tmp_path / "ray") == snapshot(tmp_path / "local") == snapshot(tmp_path / "alone")
    assert len(list((tmp_path / "ray" / "blocks").iterdir())) > 2


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "workers").mkdir()
    messages: list[str] = []

    def kill() -> None:
        while not (left := [path for path in (tmp_path / "workers").iterdir() if path.name.isdecimal()]):
            time.sleep(0.01)
        os.kill(int(left[0].name), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    left = played(
        tmp_path / "ray", partial(fake_play.named, tmp_path / "workers"), replace(RAY, say=messages.append)
    )
    killer.join()
    assert left == played(tmp_path / "local", fake_play.sparsely, HERE)
    assert len(messages) == 1
    assert "its process was lost, and it is sent again (loss 1 of at most 3" in messages[0]


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
    runner = command(
        "tests.unit.lab.study.play_in_a_folder",
        str(tmp_path / "ray"),
        "60",
        "2",
        "ray",
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with runner:
        while not list(tmp_path.glob("ray/*/segment-000")) and runner.poll() is None:
            time.sleep(0.01)
        os.killpg(runner.pid, signal.SIGINT)
        # Ray's processes share the pipes, which end when the last of them does.
        out, err = runner.communicate(timeout=30)
    assert out == ""
    assert err.startswith("Traceback")
    assert err.count("KeyboardInterrupt") == 1
    assert not list(tmp_path.rglob("*.part"))
    assert played(tmp_path / "ray", fake_play.sparsely, HERE).keys() >= {"c2-paired-s0/COMPLETE.json"}
