"""Missing data never turn a sign: what is compared is complete, and said, whatever an arm lacks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.conftest import run
from tests.unit.drafting.conftest import Row, draft, fill_in, write
from toolkit.decisions.intervals import linearized

ARMS, SEEDS, TASKS = ("base", "cot", "sc"), (0, 1, 2, 3), 20
LACKING = 0.06


def episodes() -> list[Row]:
    """Three arms with scores; cot is better by five and lacks two tasks, and some rows are lost."""
    rng = np.random.default_rng(7)
    rows = [
        {
            "arm": arm,
            "seed": seed,
            "task": f"t{task:02}",
            "score": round(float(score), 1),
            "success": int(score > 70),
        }
        for arm in ARMS
        for seed in SEEDS
        for task in range(TASKS if arm != "cot" else TASKS - 2)
        for score in [60 + 5 * (arm == "cot") + task + rng.normal(0, 6)]
    ]
    return [row for row in rows if rng.random() > LACKING]


def drafted(project: Path, outcome: str, *changes: tuple[str, str]) -> None:
    """Draft a study of these logs and fill it in, with half of an evaluation allowed to be missing."""
    draft(project, episodes(), "base", f"--{outcome}", outcome)
    fill_in(project, ('most = "0.05"', 'most = "0.5"'), *changes)


def decided(project: Path, rows: list[Row]) -> dict[str, Any]:
    assert run("freeze", "mine", "--demonstration").code == 0
    done = run("registers", "import", "mine", write(project / "log.csv", rows))
    assert done.code == 0, done.err
    assert run("registers", "verify", "--study", "mine").code == 0
    return {
        decision["rule"]: decision for decision in run("decide", "--all", "--study", "mine", "--json").json()
    }


def pairs(rows: list[Row], arm: str, outcome: str) -> dict[tuple[int, str], float]:
    """Return arm minus base of every seed and task that both have."""
    of = {(row["arm"], row["seed"], row["task"]): row[outcome] for row in rows}
    return {
        (seed, task): of[arm, seed, task] - score
        for (name, seed, task), score in of.items()
        if name == "base" and (arm, seed, task) in of
    }


@pytest.mark.parametrize(("outcome", "counts_as"), [("score", "excluded"), ("success", "failure")])
def test_an_estimate_is_that_of_complete_pairs_and_says_what_it_rests_on(project, outcome, counts_as) -> None:
    drafted(project, outcome, (f'counts_as = "{counts_as}"', 'counts_as = "excluded"'))
    rows = episodes()
    for rule, arm in zip(decided(project, rows).values(), ARMS[1:], strict=True):
        differences = pairs(rows, arm, outcome)
        means = {s: np.mean([value for (seed, _), value in differences.items() if seed == s]) for s in SEEDS}
        estimate = rule["estimate"]
        assert estimate["by_seed"] == pytest.approx({str(s): mean for s, mean in means.items()}, abs=1e-5)
        assert estimate["mean"] == pytest.approx(np.mean(list(means.values())), abs=1e-5)
        if arm == "cot" and outcome == "score":
            assert estimate["mean"] > 0, "with missing scores as zeros it would be the other way round"
        for each in estimate["coverage"]:
            there = sum(row["arm"] == each["arm"] for row in rows)
            assert each == {
                "arm": each["arm"],
                "registered": len(SEEDS) * TASKS,
                "present": there,
                "missing": len(SEEDS) * TASKS - there,
                "excluded": len(SEEDS) * TASKS - len(differences),
                "imputed": 0,
            }
        said = run("decide", rule["rule"], "--study", "mine").out
        assert f"{estimate['coverage'][0]['present']} of {len(SEEDS) * TASKS} present" in said


def test_an_interval_of_incomplete_seeds_moves_with_each_task_as_their_means_do(project: Path) -> None:
    drafted(project, "score")
    rows = episodes()
    decision = decided(project, rows)["H1"]
    differences = pairs(rows, "cot", "score")
    tasks = sorted({task for _, task in differences})

    def mean(weight: dict[str, float]) -> float:
        """Return the mean over seeds of weighted means over tasks."""
        of = [[(weight[t], value) for (s, t), value in differences.items() if s == seed] for seed in SEEDS]
        return float(np.mean([sum(w * value for w, value in seed) / sum(w for w, _ in seed) for seed in of]))

    step, even = 1e-6, dict.fromkeys(tasks, 1.0)
    influence = np.array([(mean(even | {task: 1 + step}) - mean(even)) / step for task in tasks])
    error = float(np.sqrt((influence**2).sum() * len(tasks) / (len(tasks) - 1)))
    reach = float(stats.t.ppf(0.975, len(tasks) - 1)) * error
    assert decision["interval"]["low"] == pytest.approx(mean(even) - reach, abs=1e-3)
    assert decision["interval"]["high"] == pytest.approx(mean(even) + reach, abs=1e-3)


def test_what_is_complete_is_left_as_it_is() -> None:
    assert linearized([[1, 2], [3, 4]]) == [[1, 2], [3, 4]]
    assert linearized([[1, None, 3]]) == [[0.5, 2, 3.5]]


def test_a_missing_score_is_not_the_lowest(project: Path) -> None:
    drafted(project, "score", ('counts_as = "excluded"', 'counts_as = "failure"'))
    run("freeze", "mine", "--demonstration").refused(4, "a missing score is not zero", 'missing = "excluded"')
    rehearsed = run("rehearse", "mine", "pilot.csv", "--simulations", "0", "--json").json()
    assert {decision["verdict"] for decision in rehearsed["decisions"]} == {"not_evaluable"}
    assert all("have no score" in decision["missing"][0] for decision in rehearsed["decisions"])


def test_a_verdict_under_bounds_holds_whatever_the_missing_of_one_arm_were(project: Path) -> None:
    """One episode of each arm is missing: both as failures, and both as successes, the difference stays."""
    drafted(
        project,
        "success",
        ('counts_as = "failure"', 'counts_as = "bounds"'),
        ("adjusted(gap_sc_p) < 0.05", "mean(gap_sc) > -0.01"),
        ("upper(gap_sc_95) >= 0.05", "mean(gap_sc) < 0.05"),
    )
    rows = [
        {"arm": arm, "seed": seed, "task": f"t{task:02}", "score": 1.0, "success": task % 2}
        for arm in ARMS
        for seed in SEEDS
        for task in range(TASKS)
        if (arm, seed, task) not in {("base", 0, 1), ("sc", 0, 1)}
    ]
    decision = decided(project, rows)["H2"]
    bounds = decision["missing_data"]
    assert (bounds["all_fail"], bounds["all_succeed"]) == ("pass", "pass")
    assert bounds["one_arm"] == {"sc": "pass", "base": "miss"}
    assert decision["verdict"] == "not_evaluable"
    assert [each["imputed"] for each in decision["estimate"]["coverage"]] == [1, 1]
