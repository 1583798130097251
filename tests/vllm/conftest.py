"""vLLM on a processor: what it has to be told there, and the commands that meet it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import CHECKOUT, SMALL_MODEL
from tests.unit.stack import require_vllm

PROCESSOR = {
    "PYTHONPATH": os.pathsep.join(map(str, (Path(__file__).parent / "processor", CHECKOUT, SMALL_MODEL))),
    # Its engine in the process that asks, as beside a trainer; a server starts one of its own all the same.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # No minutes of compiling for seconds of work.
    "TORCH_COMPILE_DISABLE": "1",
    # Gigabytes of the machine's memory, in place of nearly all that there is.
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # Threads that wait for each other on busy cores cost more than they do; one alone always sums alike.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}
Evaluate = Callable[..., list[dict[str, Any]]]


def command(*arguments: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m …` on a processor; fail where it does not exit as expected."""
    ended = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=CHECKOUT,
        env={**os.environ, **PROCESSOR, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == code, ended.stderr[-5000:]
    return ended


@pytest.fixture(scope="session", autouse=True)
def on_a_processor() -> None:
    """Have vLLM in this process as in the others."""
    require_vllm()
    os.environ |= PROCESSOR
    from tests.vllm.processor import sitecustomize

    assert sitecustomize.__doc__


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of the model `small`, its heads of the size that vLLM wants."""
    from tests.vllm.padded import save_padded

    return save_padded(tmp_path_factory.mktemp("model") / "padded")


@pytest.fixture
def evaluate(tmp_path: Path) -> Evaluate:
    """Return a function that evaluates without chance, and gives the episodes."""

    def evaluated(*options: object, **environment: str) -> list[dict[str, Any]]:
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        sets = ("--sets", "clean,faults_p025", "--tasks", 4, "--schedules", 1, "--no-luck-share")
        asked = (*sets, "--temperature", 0, "--out", out, "--json", *options)
        json.loads(command("toolkit", "evaluate", *asked, **environment).stdout)
        files = sorted((out / "registers" / "episodes").glob("*.parquet"))
        return [row for file in files for row in pl.read_parquet(file).to_dicts()]

    return evaluated


def alike(episodes: list[dict[str, Any]], others: list[dict[str, Any]], least: int = 6) -> bool:
    """Whether two evaluations are of one policy: where two tokens are nearly as likely, engines may part."""
    assert len(episodes) == len(others) == 8
    assert any(row["true_success"] for row in episodes)
    return sum(mine == theirs for mine, theirs in zip(episodes, others, strict=True)) >= least
