"""Recorded groups become episodes: a row a rollout, whose arm is the design."""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import run
from tests.unit.registers.importing.logs import LOGS, of_file, refused, study_of
from toolkit.registers.importing.reading import read_log

RECORDS = LOGS / "pairing"
OF_GROUPS = ("regime", "seed", "step", "task", "exposed", "zero_variance", "spurious")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_cell_is_as_it_was_recorded() -> None:
    log = read_log([RECORDS])
    for file in sorted(RECORDS.iterdir()):
        written = [
            (group["design"], *(group[name] for name in OF_GROUPS), slot, *values)
            for group in lines(file)
            for slot, values in enumerate(
                zip(
                    *(group[name] for name in ("schedule_seeds", "true_outcomes", "observed_rewards")),
                    strict=True,
                )
            )
        ]
        of_slots = ("schedule", "schedule_seed", "true_success", "observed_reward")
        assert of_file(log, file.stem, "arm", *OF_GROUPS, *of_slots) == written
        assert run("pairing", "verify", file, "--json").json()["groups"] == len(lines(file)) == 12


def test_it_gives_a_study_with_designs_as_arms_and_its_schedules() -> None:
    tables = study_of(read_log([RECORDS]))
    assert sorted(tables["runs"]["arm"].unique()) == ["independent", "paired"]
    assert {name: table.height for name, table in tables.items()} == {
        "runs": 4,
        "episodes": 4 * 48,
        "evaluations": 16,
        "task_pools": 3,
    }
    assert {"schedule_seed", "observed_reward"} <= {*tables["episodes"].columns}


def test_the_rate_of_spurious_groups_can_be_what_a_study_decides_on() -> None:
    tables = study_of(read_log([RECORDS]), true_success="spurious")
    episodes = tables["episodes"].join(tables["runs"], on="run_id")
    rates = episodes.group_by("arm").agg(pl.col("true_success").mean())
    groups = [group for file in RECORDS.iterdir() for group in lines(file)]
    for row in rates.iter_rows(named=True):
        own = [group["spurious"] for group in groups if group["design"] == row["arm"]]
        assert row["true_success"] == sum(own) / len(own)


def test_outcomes_between_no_and_yes_are_scores(tmp_path: Path) -> None:
    group = {**lines(RECORDS / "paired-s0.jsonl")[0], "true_outcomes": [0.5, 1.0, 0, 1.0]}
    (tmp_path / "groups.jsonl").write_text(json.dumps(group))
    assert read_log([tmp_path]).table["score"].to_list() == [0.5, 1, 0, 1]


@pytest.mark.parametrize(
    "change",
    [{"schedule_seeds": ["1"]}, {"true_outcomes": "1111"}, {"step": None}, {"seed": "x"}, {"repeat": "0"}],
)
def test_a_line_that_is_no_group_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "groups.jsonl"
    good = lines(RECORDS / "paired-s0.jsonl")
    file.write_text("\n".join(map(json.dumps, [good[0], {**good[1], **change}])))
    refused(file, match="groups.jsonl is not a record of groups")


def test_a_group_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copy(RECORDS / "paired-s0.jsonl", tmp_path / f"{name}.jsonl")
    refused(tmp_path, match="twice")
