"""The determinism that environment checkers ask for, also across processes and Python versions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

SCRIPT = """
import hashlib, json, sys
from toolkit.lab.episodes.agents import careless, reference
from toolkit.lab.episodes.document import episode_document
from toolkit.lab.episodes.episode import play
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed
from toolkit.lab.tasks.pools import load_task
digest = hashlib.sha256()
for number in range(30):
    task = load_task(f"test:{number}")
    for regime in REGIMES.values():
        for agent in (reference, careless):
            episode = play(task, regime, evaluation_seed(task.task_id, number), agent, traced=True)
            digest.update(json.dumps(episode_document(episode), ensure_ascii=False).encode())
print(digest.hexdigest())
"""


def printed(python: str, hash_seed: str = "0") -> str:
    """Return the digest of an interpreter's episodes; nothing where it is too old, or does not run."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONHASHSEED": hash_seed}
    asked = [python, "-c", "import sys; print(sys.version_info >= (3, 11))"]
    if subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() != "True":
        return ""
    made = [python, "-c", SCRIPT]
    return subprocess.run(made, env=environment, capture_output=True, text=True, check=True, cwd="/").stdout


def test_the_hash_seed_of_the_process_does_not_matter() -> None:
    assert printed(sys.executable, "1") == printed(sys.executable, "2") != ""


@pytest.mark.slow
def test_other_python_versions_play_the_same_episodes_to_the_byte() -> None:
    names = [f"python3.{minor}" for minor in range(11, 16)] + ["python3", "pypy3"]
    folders = ("/usr/bin", "/usr/local/bin")
    paths = {shutil.which(name) for name in names}
    paths |= {shutil.which(name, path=folder) for name in names for folder in folders}
    paths |= {str(path) for path in Path.home().glob(".pyenv/versions/3.*/bin/python")}
    results = {path: printed(path) for path in sorted(filter(None, paths - {sys.executable}))}
    found = {path: digest for path, digest in results.items() if digest}
    assert set(found.values()) <= {printed(sys.executable)}, found
    if not found:
        pytest.skip("no other Python interpreter of version 3.11 or newer is at hand to compare with")
