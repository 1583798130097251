"""A mixed-effects model says a rule's estimate a second time, and changes no verdict."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import run
from toolkit.places import HOME_VARIABLE

TASKS = 30


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], NDArray[np.float64]]:
    """Make, import and freeze a balanced study of scores; its differences by seed and task are returned."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def made(seeds: int) -> NDArray[np.float64]:
        rng = np.random.default_rng(seeds)
        task, effect = rng.normal(0, 1, TASKS), 0.5 + rng.normal(0, 0.8, TASKS)
        noise = rng.normal(0, 0.4, (2, seeds, TASKS))
        scores = {"new": task + effect + noise[0], "old": task + noise[1]}
        rows = ["strategy,seed,task,score,started_at"]
        rows += [
            f"{arm},{seed},{at},{float(values[seed, at])!r},2999-01-01T00:00:00Z"
            for arm, values in scores.items()
            for seed in range(seeds)
            for at in range(TASKS)
        ]
        (tmp_path / "log.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        assert run("new-study", "mine", "--table", "log.csv", "--into", ".").code == 0
        for path in [*tmp_path.glob("prereg/mine/*"), tmp_path / "cards/mine.md"]:
            path.write_text(path.read_text(encoding="utf-8").replace("FILL IN", "said"), encoding="utf-8")
        assert run("freeze", "mine", "--demonstration").code == 0
        assert run("registers", "import", "mine", "log.csv").code == 0
        return scores["new"] - scores["old"]

    return made


def modelled() -> dict[str, Any]:
    (shown,) = run("explain", "H1", "--study", "mine", "--sensitivity", "--json").json()
    found: dict[str, Any] = shown["sensitivity"]
    return found


@pytest.mark.parametrize("seeds", [1, 4])
def test_in_a_balanced_study_it_is_the_mean_with_the_error_of_the_tasks_differences(
    study: Callable[[int], NDArray[np.float64]], seeds: int
) -> None:
    """By hand: the best estimate of a balanced design is the plain mean, and tasks are what is sampled."""
    of_task = study(seeds).mean(axis=0)
    found = modelled()
    error = of_task.std(ddof=1) / TASKS**0.5
    assert found["converged"]
    assert found["estimate"] == pytest.approx(of_task.mean(), abs=1e-6)
    assert found["low"] == pytest.approx(of_task.mean() - 1.96 * error, abs=0.01 * error)
    assert found["high"] == pytest.approx(of_task.mean() + 1.96 * error, abs=0.01 * error)
    assert (found["effect_sd"] is None) == (seeds == 1)
    assert found["task_sd"] == pytest.approx(1, abs=0.4)


def test_it_stands_beside_the_registered_interval_and_changes_no_verdict(
    study: Callable[[int], NDArray[np.float64]],
) -> None:
    study(2)
    said = run("explain", "H1", "--study", "mine", "--sensitivity").out
    assert "mixed-effects model, 30 tasks random" in said
    assert "it changes no verdict" in said
    (plain,) = run("explain", "H1", "--study", "mine", "--json").json()
    (shown,) = run("explain", "H1", "--study", "mine", "--sensitivity", "--json").json()
    assert {name: shown[name] for name in plain} == plain


def test_a_study_without_rows_has_none() -> None:
    run("explain", "H2a", "--study", "published", "--sensitivity").refused(3, "no episode rows")


def test_a_rule_whose_estimate_is_no_difference_of_arms_has_none() -> None:
    run("explain", "H1a", "--study", "embedded", "--sensitivity").refused(2, "no difference of two arms")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.study.power.mixed.find_spec", lambda _: None)
    run("explain", "H2a", "--study", "embedded", "--sensitivity").refused(3, "[sensitivity]")
