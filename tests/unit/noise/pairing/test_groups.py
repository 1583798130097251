"""Groups of rollouts in a plain loop, and their record."""

import json
import runpy
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, run
from toolkit.errors import DamagedError, UsageError, VerificationError
from toolkit.noise.draws import Design
from toolkit.noise.trainers.groups import Group, Groups, read, verify
from toolkit.noise.trainers.tools import tool
from toolkit.registers.row_tables import GROUPS

SIZE = 4


class Files:
    """A world of one text."""

    @tool("read", "path")
    def show(self, path: str) -> str:
        """Show a file."""
        return path


def loop(record: Path, steps: int = 3, design: Design = "paired", regime: str = "flips_q010") -> Groups:
    """Play steps of three tasks; who succeeds follows from task and slot."""
    groups = Groups(design, regime, seed=5, size=SIZE, record=record)
    for step in range(1, steps + 1):
        for task in range(3):
            for slot in range(SIZE):
                groups.rollout(step, task, slot).observed(float(slot != task))
    return groups


def row(seed: int, step: int, task: str, repeat: int) -> int:
    """Return a group's seed from the bytes that `toolkit.seeds` describes."""
    fields = [b"i" + (8).to_bytes(4, "big") + step.to_bytes(8, "big")]
    fields += [b"s" + len(task.encode()).to_bytes(4, "big") + task.encode()]
    fields += [b"i" + (8).to_bytes(4, "big") + repeat.to_bytes(8, "big")]
    message = b"group/v1\0" + seed.to_bytes(8, "big") + b"".join(fields)
    return int.from_bytes(sha256(message).digest()[:8], "big")


def test_a_paired_group_shares_one_schedule_and_an_independent_one_none() -> None:
    shared, own = (Groups(design, "clean", 5, SIZE) for design in ("paired", "independent"))  # type: ignore[arg-type]
    assert [shared.rollout(2, "a", slot, 1).schedule_seed for slot in range(SIZE)] == [
        row(5, 2, "a", 1)
    ] * SIZE
    assert len({own.rollout(2, "a", slot, 1).schedule_seed for slot in range(SIZE)}) == SIZE


def test_a_line_is_a_group_of_the_register(tmp_path: Path) -> None:
    record = tmp_path / "groups.jsonl"
    groups = Groups("independent", "faults_p025", 5, SIZE, record)
    met = []
    for slot in reversed(range(SIZE)):
        assert not record.exists()
        rollout = groups.rollout(7, "a task", slot)
        files = rollout.noisy(Files())
        for _ in range(3):
            files.show("notes")
        met.append(bool(files.session.exposures))
        assert rollout.observed(slot / 4) == slot / 4
    said = json.loads(record.read_text())
    assert said == {
        "design": "independent",
        "regime": "faults_p025",
        "seed": 5,
        "step": 7,
        "task": "a task",
        "repeat": 0,
        "schedule_seeds": [str(groups.rollout(7, "a task", slot).schedule_seed) for slot in range(SIZE)],
        "true_outcomes": [0, 0.25, 0.5, 0.75],
        "observed_rewards": [0, 0.25, 0.5, 0.75],
        "exposed": sum(met),
        "zero_variance": False,
        "spurious": False,
    }
    assert sum(met) > 0
    shared = {"step", "task", "regime", "schedule_seeds", "observed_rewards", "exposed", "zero_variance"}
    assert shared | {"spurious"} <= set(Group.__struct_fields__) & set(GROUPS.column_names)


def test_a_run_that_was_killed_leaves_whole_lines_and_goes_on_without_doubling(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    loop(whole)
    for kept in (0, 1, 500, 1000, len(whole.read_bytes()) - 1):
        cut.write_bytes(whole.read_bytes()[:kept])
        loop(cut)
        assert cut.read_bytes() == whole.read_bytes()


def test_a_run_that_goes_on_from_a_checkpoint_forgets_later_groups(tmp_path: Path) -> None:
    record = tmp_path / "groups.jsonl"
    loop(record)
    groups = Groups("paired", "flips_q010", 5, SIZE, record)
    groups.resume(2)
    assert [group.step for group in read(record)] == [1] * 3 + [2] * 3
    for slot in range(SIZE):
        groups.rollout(3, 0, slot).observed(0.0)
    assert read(record)[-1].true_outcomes == [0] * SIZE
    assert verify(record).groups == 7


def test_a_group_that_comes_out_otherwise_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "groups.jsonl"
    groups = loop(record)
    for slot in range(SIZE - 1):
        groups.rollout(1, 0, slot).observed(0.0)
    with pytest.raises(DamagedError, match="came out otherwise"):
        groups.rollout(1, 0, SIZE - 1).observed(0.0)
    assert verify(record).groups == 9


@pytest.mark.parametrize("design", ["paired", "independent"])
def test_the_example_of_any_loop_records_its_groups(design, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(CHECKOUT / "examples" / "pairing"))
    monkeypatch.setattr(sys, "argv", ["plain.py", design])
    runpy.run_path(str(CHECKOUT / "examples" / "pairing" / "plain.py"))
    groups = read(tmp_path / "groups.jsonl")
    found = verify(tmp_path / "groups.jsonl")
    assert (found.groups, found.rollouts, found.steps) == (4, 16, 2)
    # All rollouts of a group do the same: those of a paired one come out the same.
    assert all(len(set(group.true_outcomes)) == 1 for group in groups) == (design == "paired")


def test_two_groups_of_one_task_do_not_merge(tmp_path: Path) -> None:
    groups = Groups("paired", "clean", 5, 2, tmp_path / "groups.jsonl")
    groups.rollout(1, "a", 0).observed(1.0)
    with pytest.raises(UsageError, match="observed twice"):
        groups.rollout(1, "a", 0).observed(1.0)
    assert groups.rollout(1, "a", 0).schedule_seed != groups.rollout(1, "a", 0, repeat=1).schedule_seed


@pytest.mark.parametrize("other", [("independent", "clean", 5, 2), ("paired", "clean", 6, 2)])
def test_the_record_of_another_loop_is_refused(tmp_path: Path, other: Any) -> None:
    record = tmp_path / "groups.jsonl"
    groups = Groups("paired", "clean", 5, 2, record)
    for slot in range(2):
        groups.rollout(1, "a", slot).observed(1.0)
    with pytest.raises(DamagedError, match="another loop's"):
        Groups(*other, record)


@pytest.mark.parametrize(
    "wrong",
    [
        ("blocked", "clean", 0, 2),
        ("paired", "noisy", 0, 2),
        ("paired", "clean", -1, 2),
        ("paired", "clean", 0, 0),
    ],
)
def test_a_loop_that_cannot_be_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Groups(*wrong)


def test_what_is_no_slot_and_no_outcome_is_refused() -> None:
    groups = Groups("paired", "clean", 0, 2)
    with pytest.raises(UsageError, match="no such slot"):
        groups.rollout(1, "a", 2)
    with pytest.raises(UsageError, match="finite number"):
        groups.rollout(1, "a", 0).observed(float("nan"))


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda group: {**group, name: change(group[name])}


FORGED = {
    "seed": changed("schedule_seeds", lambda seeds: [str(int(seeds[0]) ^ 1), *seeds[1:]]),
    "step": changed("step", lambda step: step + 10),
    "task": changed("task", lambda task: task + "x"),
    "design": changed("design", lambda _: "independent"),
    "loop": changed("seed", lambda seed: seed + 1),
    "reward": changed("observed_rewards", lambda rewards: [1 - reward for reward in rewards]),
    "outcome": changed("true_outcomes", lambda true: [0.5, *true[1:]]),
    "variance": changed("zero_variance", lambda flag: not flag),
    "spurious": changed("spurious", lambda flag: not flag),
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_record_that_does_not_follow_is_not_verified(tmp_path: Path, forged: str) -> None:
    record = tmp_path / "groups.jsonl"
    loop(record)
    assert run("pairing", "verify", record, "--json").json() == {
        "record": str(record),
        "groups": 9,
        "rollouts": 36,
        "steps": 3,
        "zero_variance": sum(group.zero_variance for group in read(record)),
        "spurious": 0,
    }
    lines = record.read_text().splitlines()
    lines[4] = json.dumps(FORGED[forged](json.loads(lines[4])))
    record.write_text("\n".join(lines))
    run("pairing", "verify", record, "--json").refused(1, "line 5")


def test_a_group_that_is_there_twice_is_not_verified(tmp_path: Path) -> None:
    record = tmp_path / "groups.jsonl"
    loop(record, steps=1)
    record.write_text(record.read_text() * 2)
    with pytest.raises(VerificationError, match="twice"):
        verify(record)


@pytest.mark.parametrize(
    "line", ["", "{}", "[]", "{", '"text"', "null", "9", '{"design": "paired"}', "[" * 100_000]
)
def test_what_is_no_record_is_refused(tmp_path: Path, line: str) -> None:
    record = tmp_path / "groups.jsonl"
    record.write_text(line)
    run("pairing", "verify", record, "--json").refused(4, str(record))


@pytest.mark.parametrize(
    "change",
    [
        {"schedule_seeds": []},
        {"true_outcomes": ["1", "1"]},
        {"task": 3},
        {"step": "1"},
        {"exposed": 3},
        {"design": "x"},
        {"regime": "x"},
        {"other": 1},
    ],
)
def test_a_line_whose_values_none_can_have_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    record = tmp_path / "groups.jsonl"
    groups = Groups("paired", "clean", 5, 2, record)
    for slot in range(2):
        groups.rollout(1, "a", slot).observed(1.0)
    record.write_text(json.dumps(json.loads(record.read_text()) | change))
    run("pairing", "verify", record, "--json").refused(4, f"{record}, line 1")
