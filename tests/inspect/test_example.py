"""The worked example with logs of Inspect, from a log to decided rules and a site: see `tests.own_study`."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests import own_study
from tests.own_study import EXAMPLES, counted, decided, readme, shell
from tests.unit.stack import require_inspect

NAME = "prompting"
Answers = dict[tuple[str, int], dict[tuple[str, int], str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_inspect()
    return own_study.played(NAME, tmp_path_factory.mktemp("examples"))


def answers(logs: Path) -> Answers:
    """Return the answers of logs as Inspect reads them: by strategy and seed, by sum and epoch."""
    from inspect_ai.log import read_eval_log

    told: Answers = {}
    for path in logs.glob("*.eval"):
        log: Any = read_eval_log(str(path))
        told[log.eval.task_args["strategy"], log.plan.config.seed] = {
            (sample.id, sample.epoch): sample.scores["match"].answer for sample in log.samples
        }
    return told


def test_verdicts_are_as_the_readme_says(folder: Path) -> None:
    own_study.check_verdicts(folder, {"H1": "pass", "P1": "met"})


def test_runs_came_after_the_freeze(folder: Path) -> None:
    own_study.check_chronology(folder, 6, "six")


def test_the_site_shows_every_rule(folder: Path) -> None:
    own_study.check_site(folder)


def test_counts_are_those_of_the_sums_that_are_right(folder: Path) -> None:
    right = {
        (strategy, seed): sum(
            int(answer) == sum(map(int, name.split("+"))) for (name, _), answer in told.items()
        )
        for (strategy, seed), told in answers(folder / "logs").items()
    }
    assert counted(folder) == {(strategy, seed, 0): (40, n) for (strategy, seed), n in right.items()}
    gap = sum(right["steps", seed] - right["direct", seed] for seed in range(3)) / 120
    interval = decided(folder)["H1"]["interval"]
    assert (
        f"step by step {100 * gap:.1f} points more of the sums are right, and the interval over sums, from "
        f"{100 * interval['low']:.1f} to {100 * interval['high']:.1f}, lies above zero"
    ) in readme(NAME)
    fewest = min(right["steps", seed] for seed in range(3)) / 40
    assert f"the fewest are {100 * fewest:.1f}%" in readme(NAME)


def test_the_script_gives_the_same_answers(folder: Path, tmp_path: Path) -> None:
    done = shell(tmp_path, f'"{sys.executable}" "{EXAMPLES / NAME / "run.py"}" again 0')
    assert done.returncode == 0, done.stderr
    kept = {place: told for place, told in answers(folder / "logs").items() if place[1] == 0}
    assert answers(tmp_path / "again") == kept
