"""Rollouts of verifiers: tools served by processes of their own meet the schedules of their groups."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import CHECKOUT
from tests.unit.stack import require_verifiers
from toolkit.errors import DamagedError
from toolkit.noise.trainers.groups import Groups, read, verify

require_verifiers()

import verifiers.v1 as vf  # noqa: E402 - only where it is there

from toolkit.noise.trainers.verifiers import NoisyData, NoisyState, Slot, observed, slots  # noqa: E402

EXAMPLES = CHECKOUT / "examples" / "pairing"


@pytest.mark.parametrize("design", ["paired", "independent"])
def test_the_example_plays_its_groups(design: str, tmp_path: Path) -> None:
    path = os.pathsep.join(map(str, (CHECKOUT, EXAMPLES, CHECKOUT / "tests" / "pairing")))
    command = [sys.executable, str(EXAMPLES / "with_verifiers.py"), design, "scripted"]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert not done.returncode, done.stderr
    groups = read(tmp_path / "groups.jsonl")
    assert [(group.step, group.task) for group in groups] == [
        (step, name) for step in (1, 2) for name in ("notes", "plan")
    ]
    assert done.stdout.splitlines() == [str(group.observed_rewards) for group in groups]
    assert verify(tmp_path / "groups.jsonl").rollouts == 8
    # Who meets no fault copies the file; all rollouts do the same, and a paired group meets the same.
    for group in groups:
        assert sum(group.true_outcomes) >= len(group.true_outcomes) - group.exposed
        assert design == "independent" or (group.zero_variance and group.exposed in (0, 2))
    assert sum(group.exposed for group in groups) not in (0, 8)


def test_a_flip_is_in_the_trace_and_the_truth_in_the_record(tmp_path: Path) -> None:
    groups = Groups("independent", "flips_q010", 0, 40, tmp_path / "groups.jsonl")
    rewards = []
    for slot in slots(groups, vf.Task(NoisyData(id="c")), step=1):
        trace = vf.Trace.model_construct(rewards={}, state=NoisyState())
        trace.record_reward("solved", 1.0)
        slot.traces, slot.episode = [trace], SimpleNamespace(ok=True)
        rewards.append(observed(slot))
        assert trace.reward == rewards[-1]
    [group] = read(tmp_path / "groups.jsonl")
    assert (group.true_outcomes, group.observed_rewards) == ([1.0] * 40, rewards)
    assert 0 < rewards.count(0.0) < 20


def test_a_rollout_that_failed_has_no_outcome() -> None:
    [slot, _] = slots(Groups("paired", "clean", 0, 2), vf.Task(NoisyData(id="a")), step=1)
    with pytest.raises(DamagedError, match="not played to its end"):
        observed(slot)
    slot.episode = SimpleNamespace(ok=False, errors=[SimpleNamespace(message="no such tool")])
    with pytest.raises(DamagedError, match="not played to its end") as caught:
        observed(slot)
    assert caught.value.found == "no such tool"


def test_a_task_without_a_name_is_known_by_its_key() -> None:
    task = vf.Task(NoisyData(prompt="x"))
    first: Slot = slots(Groups("paired", "clean", 0, 2), task, step=1)[0]
    assert first.rollout.place.task == task.key
    assert first.task.data.schedule_seed == str(first.rollout.schedule_seed)
