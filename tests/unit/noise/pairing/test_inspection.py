"""Which design a training has really run: told by its seeds, or by what its rollouts were answered."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import CHECKOUT, Toolkit
from toolkit.lab.inspection.inspection import Call, agreement, asked, calls_of_text, inspect_log
from toolkit.noise.declaration import declare
from toolkit.noise.draws import Design, group_seeds
from toolkit.noise.regimes import REGIMES
from toolkit.noise.session import Session
from toolkit.noise.tools import Tool
from toolkit.registers.importing.source import Log
from toolkit.seeds import Stream, derive

LOGS = CHECKOUT / "tests/fixtures/logs"
SHOP = declare("shop", [Tool("show", "read", "name", stale="never"), Tool("put", "write", "name")])
TWO_CALLS = """<tool_call>{"b": 1, "a": 2}</tool_call><tool_call>g</tool_call> and then
<tool_response> one </tool_response><tool_response>two</tool_response>"""
Seeds = Callable[[int, int], tuple[int, ...]]


def by_design(design: Design) -> Seeds:
    return lambda row, size: group_seeds(design, row, size)


def training(seeds: Seeds, run: int = 0, steps: int = 20, size: int = 4) -> pl.DataFrame:
    """Return the log of a training: three tasks a step, and rollouts that call what they like."""
    rows = []
    for step in range(steps):
        for task in range(3):
            row = derive("test/row", run, step, task)
            for slot, seed in enumerate(seeds(row, size)):
                session = Session(SHOP, REGIMES["faults_p025"], seed)
                stream = Stream(derive("test/choices", row, slot))
                text = []
                for _ in range(3):
                    tool, name = stream.choice(("show", "put")), stream.choice("ab")
                    asking = json.dumps({"name": tool, "arguments": {"name": name}})
                    answer = session.call(tool, {"name": name}, lambda name=name: f"this is {name}")
                    text.append(f"<tool_call>{asking}</tool_call>")
                    text.append(f"<tool_response>{json.dumps(answer)}</tool_response>")
                rows.append({"step": step, "task": f"t{task}", "completion": "".join(text), "env_seed": seed})
    return pl.DataFrame(rows, schema_overrides={"env_seed": pl.UInt64})


def inspected(table: pl.DataFrame, **more: Any) -> Any:
    (found,) = inspect_log(Log("a table", table), **more)
    return found


@pytest.mark.parametrize("design", ["paired", "independent"])
def test_seeds_tell_the_design(design: Design) -> None:
    found = inspected(training(by_design(design)).drop("completion"))
    assert (found.design, found.basis, found.groups, found.rollouts) == (design, "seeds", 60, 240)


@pytest.mark.parametrize("design", ["paired", "independent"])
@pytest.mark.parametrize("run", range(3))
def test_without_seeds_answers_tell_it(design: Design, run: int) -> None:
    found = inspected(training(by_design(design), run).drop("env_seed"))
    assert (found.design, found.basis) == (design, "answers")
    assert found.answers.pairs > found.answers.informative > 50


def test_seeding_by_group_is_pairing_by_accident() -> None:
    found = inspected(training(lambda row, size: (row % 1000,) * size).drop("env_seed"))
    assert (found.design, found.accidental, found.contradicts) == ("paired", True, False)
    declared = inspected(training(by_design("paired")), declared="independent")
    assert (declared.accidental, declared.contradicts) == (False, True)


def test_a_group_of_which_one_rollout_has_its_own_is_neither() -> None:
    table = training(lambda row, size: (row,) * (size - 1) + (row + 1,), steps=60)
    assert inspected(table.drop("completion")).design == "neither"
    assert inspected(table.drop("env_seed")).design == "neither"


def test_groups_of_both_designs_are_neither() -> None:
    table = training(lambda row, size: group_seeds("paired" if row % 2 else "independent", row, size))
    assert inspected(table.drop("completion")).design == "neither"


def test_seeds_that_the_world_does_not_obey_are_said() -> None:
    table = training(by_design("independent")).with_columns(env_seed=pl.col("step"))
    found = inspected(table)
    assert found.design == "paired"
    assert any("does not obey" in remark for remark in found.remarks)


def test_too_few_repeated_calls_tell_nothing() -> None:
    found = inspected(training(by_design("independent"), steps=3).drop("env_seed"))
    assert found.answers.p > 0.01
    assert 0 < found.answers.expected_differing < 10
    assert found.design == "cannot_tell"
    assert found.remarks


def test_counts_are_those_of_every_pair() -> None:
    call = {answer: Call("q", answer) for answer in "xyz"}
    rollouts = [(0, "t", [call["x"]]), (0, "t", [call["x"]]), (0, "t", [call["y"]]), (1, "t", [call["y"]])]
    rollouts += [(1, "t", [call["y"]]), (2, "u", [call["z"]])]
    found = agreement(asked(rollouts))
    assert (found.pairs, found.agreeing, found.informative, found.informative_agreeing) == (4, 2, 4, 2)
    # Of ten pairs of five answers, x twice and y thrice, four are alike.
    assert found.by_chance == pytest.approx(4 * 4 / 10)


def test_p_is_that_of_every_way_to_share_out_the_answers() -> None:
    answers = [(0, "x"), (0, "x"), (1, "y"), (1, "y")]
    found = agreement(asked((group, "t", [Call("q", answer)]) for group, answer in answers))
    # Of the six ways to give x to two of four rollouts, two give it to a whole group.
    assert found.p == pytest.approx(2 / 6, abs=0.05)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("", []),
        ("<tool_call>f(1)</tool_call>", []),
        ("<tool_response>lost</tool_response>", []),
        (
            TWO_CALLS,
            [Call('{"a":2,"b":1}', "one"), Call("g", "two")],
        ),
        (
            "<tool_call>" + "[" * 10_000 + "</tool_call><tool_response>x</tool_response>",
            [Call("[" * 10_000, "x")],
        ),
    ],
)
def test_calls_are_read_with_their_answers(text: str, calls: list[Call]) -> None:
    assert list(calls_of_text(text)) == calls


def test_the_command_tells_recorded_groups(toolkit: Toolkit) -> None:
    document = toolkit("pairing", "inspect", LOGS / "pairing", "--json").json()
    assert {run["run"]: run["design"] for run in document["runs"]} == {
        f"{design}-s{seed}": design for design in ("independent", "paired") for seed in (0, 1)
    }
    assert document["design"] == "by_run"


@pytest.mark.slow
def test_the_command_tells_every_run_of_a_study_by_its_arm(toolkit: Toolkit) -> None:
    document = toolkit("pairing", "inspect", CHECKOUT / "registers/embedded", "--json").json()
    arms = {run["run"].split("-")[1]: set[str]() for run in document["runs"]}
    for run in document["runs"]:
        arms[run["run"].split("-")[1]].add(run["design"])
    assert arms == {
        "clean": {"independent"},
        "paired": {"paired"},
        "independent": {"independent"},
        "blocking": {"independent"},
        "blocking_paired": {"paired"},
    }


def test_what_trl_logs_of_tools_tells_the_design_of_each_run(toolkit: Toolkit) -> None:
    result = toolkit("pairing", "inspect", LOGS / "trl_tools", "--json")
    runs = {run["run"]: run for run in result.json()["runs"]}
    told = {name: (run["design"], run["basis"], run["accidental"]) for name, run in runs.items()}
    assert told == {
        "own": ("independent", "answers", False),
        "by-group": ("paired", "answers", True),
        "logged": ("independent", "seeds", False),
    }
    assert {name: [seeds["column"] for seeds in run["seeds"]] for name, run in runs.items()} == {
        "own": [],
        "by-group": [],
        "logged": ["env_seed"],
    }
    assert {(run["groups"], run["rollouts"]) for run in runs.values()} == {(32, 128)}
    # Its own seeds agree with what it was answered.
    assert runs["logged"]["answers"]["design"] == "independent"
    assert runs["by-group"]["answers"]["differing"] == 0


@pytest.mark.parametrize("log", ["trl", "verl"])
def test_a_log_without_seeds_and_calls_cannot_tell(toolkit: Toolkit, log: str) -> None:
    result = toolkit("pairing", "inspect", LOGS / log)
    assert result.code == 3
    assert "no seed of a rollout and no answered call" in result.out


def test_another_design_than_declared_ends_with_1(toolkit: Toolkit, tmp_path: Path) -> None:
    path = tmp_path / "rollouts.parquet"
    training(by_design("paired"), steps=4).write_parquet(path)
    assert toolkit("pairing", "inspect", path).code == 0
    result = toolkit("pairing", "inspect", path, "--declared", "independent")
    assert (result.code, "paired, declared independent" in result.out) == (1, True)
    toolkit("pairing", "inspect", path, "--seed-column", "nothing").refused(3, "no such column")


def test_without_groups_it_says_what_is_needed(toolkit: Toolkit, tmp_path: Path) -> None:
    path = tmp_path / "rollouts.csv"
    path.write_text("reward\n1\n", encoding="utf-8")
    toolkit("pairing", "inspect", path).refused(3)
