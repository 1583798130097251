"""A copy of the checkout in which tests run again and again, each time in a process of its own.

That process is a fork of one that has imported what is heavy, and nothing of the toolkit: a run then costs
little more than its tests. `python -m tests.mutants.bench` is that one; it takes a line of JSON for each run.
"""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutants.defects import ROOT

HEAVY = (
    "altair",
    "cryptography.x509",
    "duckdb",
    "hypothesis",
    "jinja2",
    "numpy",
    "pyarrow.parquet",
    "pytest",
)
SECONDS = 300  # a defect may make a loop endless
SECONDS_FOR_ALL = 1800


class Bench:
    """A copy of the checkout in a folder; the process that runs tests in it ends with `close`."""

    def __init__(self, folder: Path) -> None:
        self.tree, self._folder, self._written = folder / "tree", folder, 0
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                _linked(ROOT / name, self.tree / name)
        environment = {**os.environ, "PYTHONPATH": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.bench", str(folder)],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, tests: Sequence[str], seconds: int = SECONDS) -> tuple[int, str]:
        """Run tests until one fails; return pytest's exit status (-1: out of time) and its last words."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps([seconds, tests]), file=self._process.stdin, flush=True)
        status: int = json.loads(self._process.stdout.readline())
        return status, (self._folder / "output").read_text("utf-8", "replace")[-1000:]

    def replace(self, file: str, text: str) -> None:
        """Put another text in the place of a file of the copy; never through a link."""
        path = self.tree / file
        path.unlink()
        path.write_text(text, encoding="utf-8")
        self._written += 1  # compiled files are told apart by the second
        os.utime(path, (self._written, self._written))

    def close(self) -> None:
        self._process.communicate()


def _linked(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _serve(folder: Path) -> None:
    for module in HEAVY:
        importlib.import_module(module)
    for line in sys.stdin:
        seconds, tests = json.loads(line)
        child = os.fork()
        if not child:
            _test(folder, tests)
        print(json.dumps(_awaited(child, seconds)), flush=True)


def _test(folder: Path, tests: list[str]) -> None:
    import pytest

    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    status: Any = 3
    try:
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        status = pytest.main([*options, f"--basetemp={folder / 'temp'}", *tests])
    except BaseException:  # noqa: BLE001 - it must not come back into the parent's code
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(int(status))


def _awaited(child: int, seconds: int) -> int:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
