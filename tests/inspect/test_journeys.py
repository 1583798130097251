"""Logs of Inspect and of lm-evaluation-harness, worked examples and any: to a decided study with a site."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import own_study
from tests.conftest import run
from tests.own_study import EXAMPLES, asked, counted, decided, readme, shell
from tests.unit.cli.test_any_log import LOGS, MOST_COMMANDS, MOST_SECONDS, journey
from tests.unit.stack import require_inspect, require_lm_eval
from toolkit.places import HOME_VARIABLE

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


EXAMPLE = EXAMPLES / "benchmark"


def samples(folder: Path, model: str) -> list[dict[str, Any]]:
    """Return what was logged of a model, question by question."""
    (path,) = (folder / f"lab__{model}").glob("samples_capitals_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_script_writes_the_pilot_again(tmp_path: Path) -> None:
    require_lm_eval()
    programs = Path(sys.executable).parent
    done = shell(tmp_path, f'PATH="{programs}:$PATH" sh "{EXAMPLE}/run.sh" "{EXAMPLE}/pilot.jsonl" again')
    assert done.returncode == 0, (done.stdout, done.stderr)
    for model in ("narrow", "wide"):
        again, kept = samples(tmp_path / "again", model), samples(EXAMPLE / "pilot", model)
        assert [one.keys() for one in again] == [one.keys() for one in kept]
        assert [one["doc"] for one in again] == [one["doc"] for one in kept]
        assert [one["acc"] for one in again] == [one["acc"] for one in kept]
    assert all(
        json.loads(path.read_text(encoding="utf-8"))["pretty_env_info"] == ""
        for path in (tmp_path / "again").rglob("results_*.json")
    )
    read = asked(tmp_path, "new-study mine --table again --into .")
    kept_columns = asked(tmp_path, f'new-study kept --table "{EXAMPLE}/pilot" --into .')["columns"]
    assert read["columns"] == kept_columns


@pytest.mark.parametrize("source", ["inspect/strategies", "inspect/letters", "inspect/refusals"])
def test_a_log_becomes_a_decided_study_with_a_site(source, tmp_path, monkeypatch) -> None:
    require_inspect()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    played = tmp_path / "played"
    for path in (LOGS / source).iterdir():
        _played_again(path, played / path.name)
    done = journey(tmp_path, LOGS / source, played)
    assert done.commands <= MOST_COMMANDS
    assert done.seconds < MOST_SECONDS
    assert done.verdicts["H1"] in {"pass", "miss"}
    assert (done.site / "mine" / "H1.html").is_file()


def _played_again(path: Path, target: Path) -> None:
    """Write a log with another outcome of every sample."""
    from inspect_ai.log import read_eval_log, write_eval_log

    log: Any = read_eval_log(str(path))
    for sample in log.samples:
        for score in (sample.scores or {}).values():
            score.value = "I" if score.value == "C" else "C"
    write_eval_log(log, str(target))


def _nothing(log: Any) -> None:
    del log


def _dropped(log: Any) -> None:
    del log.samples[3]


def _failed(log: Any) -> None:
    from inspect_ai.log import EvalError

    log.samples[3].error = EvalError(message="it fell over", traceback="", traceback_ansi="")


def _graded(value: Any) -> Callable[[Any], None]:
    def damage(log: Any) -> None:
        for score in log.samples[3].scores.values():
            score.value = value

    return damage


def _renamed(log: Any) -> None:
    log.samples[3].id = log.eval.dataset.sample_ids[0] = "another"


def _again(log: Any) -> None:
    log.samples.append(log.samples[3].model_copy())


# What is done to a log of the study → the verdict of H1 and how many episodes are missing, or the refusal
DAMAGES: dict[str, tuple[Callable[[Any], None], str, int]] = {
    "none": (_nothing, "pass", 0),
    "dropped": (_dropped, "pass", 1),
    "failed": (_failed, "pass", 1),
    "half graded": (_graded("P"), "a value that true_success cannot have", 0),
    "graded by a word": (_graded("maybe"), "expected: true_success", 0),
    "not a number": (_graded(float("nan")), "pass", 1),
    "renamed": (_renamed, "not_evaluable", 0),
    "there twice": (_again, "pass", 0),  # Inspect writes it once
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_sample_is_missing_or_refused(name: str, tmp_path, monkeypatch) -> None:
    require_inspect()
    from inspect_ai.log import read_eval_log, write_eval_log

    damage, said, missing = DAMAGES[name]
    project = own_study.frozen(NAME, tmp_path)
    monkeypatch.setenv(HOME_VARIABLE, str(project))
    monkeypatch.chdir(project)
    file = min((project / "logs").iterdir())
    log = read_eval_log(str(file))
    damage(log)
    write_eval_log(log, str(file))
    done = run("registers", "import", NAME, "logs")
    if said not in ("pass", "not_evaluable"):
        done.refused(done.code, said)
        return
    assert done.code == 0, done.err
    (decision,) = run("decide", "H1", "--study", NAME, "--json").json()
    assert decision["verdict"] == said
    assert sum(each["missing"] for each in decision["estimate"]["coverage"]) == missing
