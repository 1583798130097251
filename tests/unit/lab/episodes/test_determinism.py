"""The determinism that environment checkers ask for, also across processes and Python versions."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.document import episode_document
from toolkit.lab.episodes.episode import play
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES

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
print(*sys.version_info[:2], digest.hexdigest())
"""


def printed(python: str, hash_seed: str = "0") -> tuple[str, str] | None:
    """Return an interpreter's version and the digest of its episodes; None where it does not run."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 11))"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout.strip() != "True":
        return None
    done = subprocess.run(
        [python, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    major, minor, digest = done.stdout.split()
    return f"{major}.{minor}", digest


def test_the_hash_seed_of_the_process_does_not_matter() -> None:
    assert printed(sys.executable, "1") == printed(sys.executable, "2") is not None


@pytest.mark.slow
def test_other_python_versions_play_the_same_episodes_to_the_byte() -> None:
    names = [f"python3.{minor}" for minor in range(11, 16)] + ["python3", "pypy3"]
    folders = ("/usr/bin", "/usr/local/bin")
    paths = {shutil.which(name) for name in names}
    paths |= {shutil.which(name, path=folder) for name in names for folder in folders}
    paths |= {str(path) for path in Path.home().glob(".pyenv/versions/3.*/bin/python")}
    others = sorted(paths - {None, sys.executable})
    results = {path: result for path in others if path and (result := printed(path)) is not None}
    own = printed(sys.executable)
    assert own is not None
    assert {digest for _, digest in results.values()} <= {own[1]}, results
    if not results:
        pytest.skip("no other Python interpreter of version 3.11 or newer is at hand to compare with")


def test_playing_anything_else_before_does_not_matter() -> None:
    task, regime = load_task("test:3"), REGIMES["faults_p025"]

    def episode() -> str:
        return json.dumps(episode_document(play(task, regime, 11, reference, traced=True)))

    first = episode()
    for number in range(30):
        play(load_task(f"test:{number}"), REGIMES["held_out_types"], number, reference)
    assert episode() == first


def test_two_desks_in_turns_do_not_meet() -> None:
    task = load_task("test:3")
    alone = Desk(task, REGIMES["faults_p025"], 5)
    answers = [alone.call(call.tool, call.arguments) for call in task.plan]
    first, other = (Desk(task, REGIMES["faults_p025"], seed) for seed in (5, 6))
    in_turns = []
    for call in task.plan:
        in_turns.append(first.call(call.tool, call.arguments))
        other.call(call.tool, call.arguments)
    assert in_turns == answers
