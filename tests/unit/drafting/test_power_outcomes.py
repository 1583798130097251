"""Outcomes that are simulated, and pilots, which are no evidence."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tests.conftest import run
from toolkit.drafting import pilot, simulation
from toolkit.drafting.outline import blank, scaffold
from toolkit.drafting.pilot import MOST_ROWS
from toolkit.drafting.power import Components, simulate
from toolkit.drafting.simulation import Outcome, draw_sums
from toolkit.errors import DamagedError, UsageError
from toolkit.places import HOME_VARIABLE
from toolkit.prereg.record import PILOTS
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.structs import replace

TASKS, MANY = 40, 600


def rules(
    count: str, scores: tuple[int, int] | None = None, *, schedules: int = 1, test: str = "", more: str = ""
) -> RuleBook:
    """Return rules on a difference of two arms with one seed, on forty tasks, whose one test is another."""
    scores = scores or ((0, 10) if count == "cost" else None)
    design = replace(blank("mine"), seeds=(0,), tasks=TASKS, schedules=schedules, scores=scores)
    design = replace(design, columns={"score" if scores else "true_success": "outcome"})
    text = scaffold(design, "me/mine")["prereg/mine/rules.toml"].partition("\n# More could be asked")[0]
    text = re.sub(r"^threshold = .*\n", "", text, flags=re.MULTILINE)
    text = text.replace('sum = "score"', f'sum = "{count}"').replace("score/episodes", f"{count}/episodes")
    return load_rulebook(text.replace("lower(gap_95) > 0", test or "lower(gap_95) > 0") + more)


TEST = '\n[tests.t]\nendpoint = "gap"\nmethod = "{}"\nalternative = "two-sided"\n'
SCORES = (0, 10)
EPISODES = Outcome("score", 0.0, 10.0, 1.5, "given")


def near(found: float, expected: float, simulations: int) -> bool:
    """Whether a share of simulations is within four Monte Carlo errors of what is expected."""
    return abs(found - expected) <= 4 * (expected * (1 - expected) / simulations) ** 0.5 + 0.003


def t_power(gap: float, sd: float, tasks: int) -> float:
    """Return the chance that a paired t test at 5% finds a gap with the first arm ahead."""
    return float(stats.nct.sf(stats.t.ppf(0.975, tasks - 1), tasks - 1, gap / sd * tasks**0.5))


COST = Outcome("cost", 0.0, float("inf"), 1.0, "given")


@pytest.mark.parametrize(
    ("outcome", "gap", "schedules"),
    [(EPISODES, 0.0, 1), (EPISODES, 0.5, 4), (EPISODES, 1.0, 1), (COST, 0.5, 1)],
)
def test_the_power_of_a_rule_on_scores_or_amounts_is_that_of_a_paired_t_test(outcome, gap, schedules) -> None:
    book = rules(outcome.name, SCORES, schedules=schedules)
    components = Components({"gap": (5.0,)}, (0.0,), 0.0, 0.0, outcome=outcome)
    found = simulate(book, "H1", components, simulation.Design(gap, 0.0, 0.1, 1, None, MANY, 3))
    expected = t_power(gap, outcome.sd * (2 / schedules) ** 0.5, TASKS)
    assert near(found.pass_probability, expected, MANY), (found.pass_probability, expected)
    assert found.covered is not None
    assert near(found.covered / MANY, 0.95, MANY)


def test_the_power_of_a_paired_t_test_is_that_of_statsmodels() -> None:
    """`TTestPower().power(0.5 / 1.5, 40, 0.025, alternative="larger")` of statsmodels 0.14."""
    assert t_power(0.5, 1.5, 40) == pytest.approx(0.5383026306501644, abs=1e-6)


def mcnemar_power(first: float, second: float, tasks: int) -> float:
    """Return the chance that McNemar's exact two-sided test has p < 0.05, over all discordant counts."""
    ahead, behind = first * (1 - second), second * (1 - first)
    won, lost = np.mgrid[: tasks + 1, : tasks + 1].reshape(2, -1)
    won, lost = (counts[won + lost <= tasks] for counts in (won, lost))
    p = np.minimum(1, 2 * stats.binom.cdf(np.minimum(won, lost), won + lost, 0.5))
    counts = np.stack([won, lost, tasks - won - lost], axis=-1)
    return float(stats.multinomial.pmf(counts, tasks, [ahead, behind, 1 - ahead - behind])[p < 0.05].sum())


@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_the_power_of_mcnemars_test_is_that_of_all_discordant_counts(gap: float) -> None:
    book = rules("successes", test="p(t) < 0.05", more=TEST.format("mcnemar"))
    components = Components({"gap": (0.4,)}, (0.0,), 0.0, 0.0)
    found = simulate(book, "H1", components, simulation.Design(gap, 0.0, 0.0, 1, None, MANY, 3))
    expected = mcnemar_power(0.4 + gap, 0.4, TASKS)
    assert near(found.pass_probability, expected, MANY), (found.pass_probability, expected)


def test_mcnemars_test_takes_one_seed_and_a_test_over_tasks_one_or_more() -> None:
    mcnemar = rules("successes", test="p(t) < 0.05", more=TEST.format("mcnemar"))
    flip = rules("successes", test="p(t) < 0.05", more=TEST.format("sign flip") + 'over = "tasks"\n')
    components = Components({"gap": (0.4,)}, (0.0,), 0.0, 0.0)
    design = simulation.Design(0.4, 0.0, 0.0, 2, None, 20, 3)
    with pytest.raises(UsageError, match="expected one seed"):
        simulate(mcnemar, "H1", components, design)
    for seeds in (1, 2):
        assert simulate(flip, "H1", components, replace(design, seeds=seeds)).passed > 10


def test_a_test_of_another_contrast_leaves_one_the_lowest_level_of_its_family() -> None:
    design = replace(blank("mine"), arms=("old", "a", "b"), seeds=(0,), tasks=TASKS)
    text = scaffold(design, "me/mine")["prereg/mine/rules.toml"]
    alone = re.sub(r"\[families.*?\n\n", "", text, flags=re.DOTALL)
    alone = re.sub(r"adjusted\((\w+)\) < 0.05", r"p(\1) < 0.025", alone)
    components = Components({"gap_a": (0.4,)}, (0.0,), 0.0, 0.0)
    both, one = (
        simulate(load_rulebook(of), "H1", components, simulation.Design(0.3, 0.0, 0.0, 1, None, 60, 3))
        for of in (text, alone)
    )
    assert 10 < both.passed == one.passed < 50
    assert (
        both.assumed
        == f"{one.assumed}; gap_b_p of comparisons find nothing, which leaves this test the lowest level"
    )


def test_an_exact_test_of_scores_passes_as_often_as_the_same_test_of_draws_from_scipy() -> None:
    more = TEST.format("wilcoxon") + 'over = "tasks"\nzeros = "dropped"\n'
    book = rules("score", SCORES, test="p(t) < 0.05", more=more)
    components = Components({"gap": (5.0,)}, (0.0,), 0.0, 0.0, outcome=EPISODES)
    simulations = 300
    found = simulate(book, "H1", components, simulation.Design(0.8, 0.0, 0.0, 1, None, simulations, 3))
    rng = np.random.default_rng(8)

    def draw(mean: float) -> np.ndarray:
        strength = (mean / 10) * (1 - mean / 10) / 0.15**2 - 1
        a = mean / 10 * strength
        return 10 * stats.beta.rvs(a, strength - a, size=(4000, TASKS), random_state=rng)

    p = stats.wilcoxon(draw(5.8) - draw(5.0), axis=1).pvalue
    assert near(found.pass_probability, float((p < 0.05).mean()), simulations)


@pytest.mark.parametrize(
    ("outcome", "mean", "sd"),
    [
        (Outcome("score", 0.0, 10.0, 1.5), 5.0, 1.5),
        (Outcome("score", -2.0, 3.0, 0.5), 2.0, 0.5),
        (Outcome("score", 0.0, 10.0, 5.0), 9.0, 3.0),  # no score has more: one of the ends
        (Outcome("score", 0.0, 1.0, 0.1), 1.0, 0.0),
        (Outcome("score", 0.0, 1.0, 0.0), 0.3, 0.0),
        (Outcome("tokens", 0.0, float("inf"), 80.0), 100.0, 80.0),
        (Outcome("tokens", 0.0, float("inf"), 80.0), 0.0, 0.0),
    ],
)
def test_episodes_have_the_mean_and_the_spread_that_are_said(outcome, mean, sd) -> None:
    sums = draw_sums(np.random.default_rng(2), outcome, 3, np.full(60_000, mean))
    assert sums.mean() == pytest.approx(3 * mean, abs=4 * sd * (3 / 60_000) ** 0.5 + 1e-9)
    assert sums.std() == pytest.approx(3**0.5 * sd, rel=0.02, abs=1e-9)
    assert sums.min() >= 3 * outcome.low
    assert sums.max() <= 3 * outcome.high


def test_a_score_beyond_its_range_is_refused() -> None:
    book = rules("score", SCORES)
    components = Components({"gap": (5.0,)}, (0.0,), 0.0, 0.0, outcome=EPISODES)
    with pytest.raises(UsageError, match=r"means of score would leave \[0, 10\]"):
        simulate(book, "H1", components, simulation.Design(5.5, 0.0, 0.1, 1, None, 10, 3))


def test_scores_near_the_end_of_their_range_keep_the_effect_if_seeds_reach_two_spreads() -> None:
    """A normal model of the seeds: their t test, as where no range cuts them off."""
    effect = 0.05
    book = rules("score", (0, 1))
    over_seeds = replace(book.intervals["gap_95"], method="t over seeds")
    book = replace(book, intervals={"gap_95": over_seeds})
    outcome = Outcome("score", 0.0, 1.0, 0.1, "given")
    components = Components({"gap": (0.11,)}, (0.0,) * 2, 0.0, 0.0, outcome=outcome)
    design = simulation.Design(effect, 0.05, 0.25, 6, None, MANY, 3)
    found = simulate(book, "H1", components, design)
    spread = (0.05**2 + 2 * 0.1**2 / TASKS) ** 0.5
    expected = float(stats.nct.sf(stats.t.ppf(0.975, 5), 5, effect / spread * 6**0.5))
    assert near(found.pass_probability, expected, MANY), (found.pass_probability, expected)
    assert found.task_sd == {"gap": 0.0}
    with pytest.raises(UsageError, match="would leave"):
        simulate(book, "H1", components, replace(design, seed_sd=0.09))


@pytest.fixture
def differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """A pilot with scores, two schedules and two seeds, from which a study is begun; its differences."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    scores = np.round(
        rng.uniform(2, 5, (2, 1, TASKS, 1)) + rng.uniform(0, 3, (2, 2, TASKS, 2)), 3
    )  # arms, seeds, tasks, schedules
    rows = [
        f"{arm},{seed},{task},{schedule},{scores[a, seed, task, schedule]},2026-01-31T12:00:00Z"
        for a, arm in enumerate(("new", "old"))
        for seed, task, schedule in product(range(2), range(TASKS), range(2))
    ]
    text = "\n".join(["strategy,seed,task,schedule,score,started_at", *rows])
    (tmp_path / "pilot.csv").write_text(text + "\n", encoding="utf-8")
    done = run("new-study", "mine", "--table", "pilot.csv", "--baseline", "old", "--into", ".")
    assert done.code == 0, done.err
    return (scores[0] - scores[1]).mean(axis=2)


def test_a_rehearsal_simulates_scores_as_wide_as_the_pilots(differences: np.ndarray) -> None:
    done = run("rehearse", "mine", "pilot.csv", "--simulations", "40", "--json").json()
    (powers,) = done["power"].values()
    sd = float(np.var(differences, axis=1, ddof=1).mean()) ** 0.5
    (said,) = {one["assumed"] for one in powers}
    assert said.startswith("a score is a Beta draw on its range")
    assert said.endswith(f"with sd {sd:.4g} (so that tasks' differences spread as recorded)")
    shown = run("rehearse", "mine", "pilot.csv", "--simulations", "10")
    assert f"H1: assumed: {said}" in " ".join(shown.out.split())
    assert "with sd" in Path(done["page"]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"seen": 1, "rules": "", "undecided": []}', '{"seen": {"a": 1}}']
)
def test_a_record_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / PILOTS).write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError, match="record of pilots"):
        pilot.read_pilots(tmp_path / PILOTS)


def test_of_long_runs_a_part_is_kept_and_tells_them() -> None:
    long = [frozenset(f"{n:016x}" for n in range(start, start + 3 * MOST_ROWS, 3)) for start in (0, 1)]
    kept = [frozenset(sorted(rows)[:MOST_ROWS]) for rows in long]
    assert pilot.is_seen(kept[0], kept[0])
    assert not pilot.is_seen(kept[0], kept[1])
    more = frozenset(sorted({*long[0], *long[1]})[:MOST_ROWS])
    assert pilot.is_seen(more, kept[0])


def test_how_often_a_task_succeeded_tells_a_run() -> None:
    def played(*outcomes: int) -> frozenset[str]:
        rows = [
            {"condition": "main", "arm": "a", "seed": 0, "task": "t", "true_success": bool(one)}
            for one in outcomes
        ]
        (kept,) = pilot.rows_of_runs(pl.DataFrame(rows)).values()
        return kept

    assert pilot.is_seen(played(1, 0, 0), played(0, 1, 0))
    assert not pilot.is_seen(played(1, 0, 0), played(1, 1, 0))
