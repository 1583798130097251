"""A draft is rehearsed on a pilot: what it would decide and see, what is to be mended; nothing counts."""

from pathlib import Path

import pytest

from tests.conftest import run
from toolkit.places import HOME_VARIABLE

TASKS, SEEDS = 20, (0, 1, 2)
# Of twenty tasks the new way solves these many, seed by seed, and the old way ten.
SOLVED = {("new", 0): 15, ("new", 1): 14, ("new", 2): 16, **{("old", seed): 10 for seed in SEEDS}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{arm},{seed},{task},{int(task < solved)},2026-01-31T12:00:00Z"
        for (arm, seed), solved in SOLVED.items()
        for task in range(TASKS)
    ]
    text = "\n".join(["strategy,seed,task,success,started_at", *rows])
    (tmp_path / "pilot.csv").write_text(text + "\n", encoding="utf-8")
    assert run("new-study", "mine", "--table", "pilot.csv", "--into", ".").code == 0
    return tmp_path


def change(project: Path, *changes: tuple[str, str]) -> None:
    rules = project / "prereg/mine/rules.toml"
    text = rules.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    rules.write_text(text, encoding="utf-8")


def test_what_a_pilot_would_decide_is_shown_and_decides_nothing(project: Path) -> None:
    done = run("rehearse", "mine", "pilot.csv", "--simulations", "0", "--json").json()
    (decision,) = done["decisions"]
    assert decision["estimate"]["by_seed"] == {"0": 0.25, "1": 0.2, "2": 0.3}
    assert decision["verdict"] == "pass"
    assert done["standing"] == "rehearsed on a pilot: it decides nothing"
    assert list((project / "registers").iterdir()) == [project / "registers" / ".gitkeep"]
    page = Path(done["page"]).read_text(encoding="utf-8")
    assert page.count("it decides nothing") == 2
    assert "<svg" in page
    said = run("rehearse", "mine", "pilot.csv", "--simulations", "0").out
    assert "IT DECIDES NOTHING" in said


def test_the_draft_is_fitted_to_the_pilot_and_powered_as_registered(project: Path) -> None:
    seeds, tasks = "seeds = [0, 1, 2]", "tasks = 20"
    change(project, (seeds, "seeds = [10, 11, 12, 13, 14, 15, 16, 17]"), (tasks, "tasks = 200"))
    done = run("rehearse", "mine", "pilot.csv", "--simulations", "60", "--json").json()
    assert "gap: seeds 0, 1, 2 instead of 10, 11, 12, 13, 14, 15, 16, 17" in done["fitted"]
    assert "gap: tasks 20 instead of 200" in done["fitted"]
    assert done["decisions"][0]["estimate"]["by_seed"]["1"] == 0.2
    effects = {power["effect"]: power for power in done["power"]["H1"]}
    assert list(effects) == [0.0, 0.05, 0.1]
    assert all(power["seeds"] == 8 for power in effects.values())
    assert effects[0.0]["pass_probability"] < 0.1 < effects[0.1]["pass_probability"]


def test_what_a_freeze_would_refuse_is_listed_at_once(project: Path) -> None:
    change(project, ('test = "lower(gap_95) > 0"', 'test = "mean(gap) >= -1"'), ("tasks = 20", "tasks = 1"))
    problems = run("rehearse", "mine", "pilot.csv", "--simulations", "0", "--json").json()["problems"]
    assert any("can never fail" in problem for problem in problems), problems
    assert any("could never be decided" in problem for problem in problems), problems


def test_rules_that_cannot_be_read_are_refused_with_the_reason(project: Path) -> None:
    change(project, ('method = "t over tasks"', 'method = "bayesian bootstrap"'))
    run("rehearse", "mine", "pilot.csv").refused(4, "bayesian bootstrap")


def test_numbers_of_the_pilot_are_marked_and_not_frozen(project: Path) -> None:
    done = run("rehearse", "mine", "pilot.csv", "--simulations", "0", "--json").json()
    marked = [problem for problem in done["problems"] if "these numbers are the log's" in problem]
    assert len(marked) == 2
    for path in project.glob("prereg/mine/*"):
        text = path.read_text(encoding="utf-8").replace('"FILL IN', '"said')
        path.write_text(text, encoding="utf-8")
    run("freeze", "mine", "--demonstration").refused(2, "was not filled in")


def test_a_study_without_a_mapping_is_not_rehearsed(project: Path) -> None:
    (project / "mappings/mine.toml").unlink()
    run("rehearse", "mine", "pilot.csv").refused(3, "no mapping")
