"""A run on two processes that accelerate launched, over gloo: what one leaves; killed and gone on with."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import CHECKOUT, SMALL_MODEL
from tests.unit.lab.study import test_language_model_run as alone
from tests.unit.lab.study.test_language_model_run import FILES, RUN, attempts
from toolkit.errors import UsageError

pytestmark = pytest.mark.slow
whole = alone.whole
ACCELERATE = CHECKOUT / "examples" / "beyond-one-machine" / "accelerate.yaml"
HOW = ("--config_file", ACCELERATE)
NOT_MIXED = ("--num_machines", 1, "--mixed_precision", "no", "--dynamo_backend", "no")
FSDP = ("--use_fsdp", "--fsdp_version", 2, *NOT_MIXED)
LAUNCH, MODULE = "accelerate.commands.launch", "tests.unit.lab.study.train_in_a_folder"
SCRIPTED = 1e-5
"""How far apart adapters may be, of what a run moved its own. Measured were 1.9e-6 after steps on what was
scripted, 1.2e-4 after the first step on what was sampled: Adam then moves a coordinate as far, however small
its gradient."""


def launch(
    processes: int, folder: Path, model: str, step: str = "", how: tuple[object, ...] = HOW
) -> subprocess.CompletedProcess[str]:
    """Have accelerate launch processes that train a run in a folder, as the example's configuration says."""
    options = (*how, "--num_processes", processes, "--main_process_port", 0)
    arguments = (folder, model, step)
    with subprocess.Popen(
        [sys.executable, "-m", LAUNCH, *map(str, options), "-m", MODULE, *map(str, arguments)],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (CHECKOUT, SMALL_MODEL)))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as launched:
        try:
            _, said = launched.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            os.killpg(launched.pid, signal.SIGKILL)  # what it launched holds the pipe, too
            raise
    return subprocess.CompletedProcess(launched.args, launched.returncode, "", said)


@pytest.fixture(scope="module")
def killed(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a study whose run's first process was killed in its third of four steps."""
    folder = tmp_path_factory.mktemp("killed")
    ended = launch(2, folder, model, "3")
    assert "Signal 9 (SIGKILL)" in ended.stderr
    return folder


@pytest.fixture(scope="module")
def together(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that two processes trained."""
    folder = tmp_path_factory.mktemp("together")
    ended = launch(2, folder, model)
    assert ended.returncode == 0, ended.stderr
    return folder / RUN


def adapter(run: Path, step: int) -> Any:
    """Return the numbers of a checkpoint's adapter."""
    from safetensors.numpy import load_file

    tensors = load_file(run / f"checkpoint-{step}" / "adapter_model.safetensors")
    return np.concatenate([tensors[name].ravel() for name in sorted(tensors)]).astype(float)


def check_alike(one: Path, two: Path, steps: tuple[int, ...], bound: float) -> None:
    """Check that two runs played the same, and that their adapters are as near as is said."""
    for name in ("groups.parquet", "episodes.parquet"):
        assert (two / name).read_bytes() == (one / name).read_bytes(), name
    start = adapter(one, 0)
    assert np.array_equal(adapter(two, 0), start)
    for step in steps:
        apart = np.linalg.norm(adapter(two, step) - adapter(one, step))
        moved = np.linalg.norm(adapter(one, step) - start)
        print(f"step {step}: {apart / moved:.1e} of what it moved")
        assert 0 < apart <= bound * moved


def test_two_processes_leave_the_groups_and_episodes_of_one(whole: Path, together: Path) -> None:
    check_alike(whole, together, (2, 4), SCRIPTED)
    assert [attempt["processes"] for run in (whole, together) for attempt in attempts(run)] == [1, 2]


def test_what_two_began_is_not_gone_on_with_by_one(killed: Path, model: str) -> None:
    with pytest.raises(UsageError, match="begun on another number of processes") as error:
        alone.train(killed, model)
    assert (error.value.expected, error.value.found) == ("2", "1")
    assert "--num_processes 2" in str(error.value.remedy)
    assert len(attempts(killed / RUN)) == 1


def test_what_two_began_and_two_go_on_with_after_a_kill_has_the_same_bytes(killed, together, model) -> None:
    assert not (killed / RUN / "COMPLETE.json").exists()
    ended = launch(2, killed, model)
    assert ended.returncode == 0, ended.stderr
    for name in FILES:
        assert (killed / RUN / name).read_bytes() == (together / name).read_bytes(), name
    launches = [(attempt["from_step"], attempt["processes"]) for attempt in attempts(killed / RUN)]
    assert launches == [(0, 2), (2, 2)]


def test_processes_that_would_divide_the_weights_begin_nothing(tmp_path: Path, model: str) -> None:
    ended = launch(2, tmp_path, model, how=FSDP)
    assert "FSDP divides a model's weights among processes" in ended.stderr
    assert not list(tmp_path.iterdir())
