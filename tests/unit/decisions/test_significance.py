"""Registered tests of significance: exact p-values of seeds and tasks, families, and what is refused."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.unit.decisions.rows_study import (
    REGISTRATION,
    ROW_RULES,
    SMALL_RUNS,
    VALIDATION,
    AsStored,
    Evaluation,
    Run,
    write_rows_study,
)
from tests.unit.decisions.study import RULES, amendment, rule, small_study
from tests.unit.decisions.test_computed import loops
from toolkit.decisions.decision import Decision
from toolkit.decisions.engine import Engine
from toolkit.decisions.intervals import p_value
from toolkit.errors import RuleError
from toolkit.estimators import holm, sign_flip, wilcoxon_test
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.values import Missing
from toolkit.structs import replace

BINARY = Evaluation("periodic", "validation", "clean", (20,), 40, 1)
ONE_SEED = tuple(run for run in SMALL_RUNS if run.seed == 0)
ARMS = ("paired", "independent")


def declared(name: str, method: str, over: str = "", more: str = "", endpoint: str = "gap") -> str:
    """Return a test as TOML, two-sided where nothing else is said."""
    lines = [f"[tests.{name}]", f'endpoint = "{endpoint}"', f'method = "{method}"']
    lines += [f'over = "{over}"'] if over else []
    lines += [] if "alternative" in more else ['alternative = "two-sided"']
    return "\n".join([*lines, more, ""])


def family(name: str, *tests: str, method: str = "holm") -> str:
    """Return a family as TOML."""
    return f'[families.{name}]\ntests = {list(tests)}\nmethod = "{method}"\n'.replace("'", '"')


FLIP = declared("flip", "sign flip", "tasks")
RANKS = declared("ranks", "wilcoxon", "tasks", 'zeros = "dropped"\nalternative = "greater"')
PAIRS = declared("pairs", "mcnemar")
BINARY_RULES = (
    ROW_RULES.replace("tasks = 5", "tasks = 40")
    .replace("schedules = 2", "schedules = 1")
    .replace('[0, 20]\nover_steps = "auc"', "[20]")
)
BINARY_RULES = BINARY_RULES.replace("seeds = [0, 1]\nby", "seeds = [0]\nby")


MANY = BINARY_RULES.replace("seeds = [0, 1]", "seeds = [0, 1, 2]").replace(
    "seeds = [0]\nby", "seeds = [0, 1, 2]\nby"
)


def made(folder: Path, rules: str, runs: tuple[Run, ...], evaluation: Evaluation, *tests: str) -> Decision:
    """Decide a rule of some tests on a study with episodes."""
    study = write_rows_study(folder, runs, [evaluation])
    return Engine(load_rulebook(rules + rule("H", *tests)), REGISTRATION, AsStored(study)).decide("H")


def by_task(runs: tuple[Run, ...], evaluation: Evaluation, *weights: Fraction) -> list[Fraction]:
    """Return the mean difference of each task over seeds, by loops over rows."""
    table = loops(runs, evaluation, weights, ARMS)
    return [sum(of, Fraction(0)) / len(table) for of in zip(*table, strict=True)]


def test_tasks_of_one_seed_are_tested_as_scipy_tests_them(tmp_path: Path) -> None:
    tests = ("p(flip) < 0.05", "p(ranks) < 0.05", "p(pairs) < 0.05")
    decision = made(tmp_path, BINARY_RULES + FLIP + RANKS + PAIRS, ONE_SEED, BINARY, *tests)
    differences = by_task(ONE_SEED, BINARY, Fraction(1))
    first, discordant = sum(d > 0 for d in differences), sum(d != 0 for d in differences)
    assert 5 < discordant < 40
    exact = stats.binomtest(first, discordant).pvalue
    assert float(decision.tests[0].p) == float(decision.tests[2].p) == pytest.approx(exact)  # type: ignore[arg-type]
    assert decision.tests[0].p == decision.tests[2].p == decision.criteria[0].value
    # Sizes are all tied: the ranks are, and the signed ranks are as good as signs.
    greater = stats.binomtest(first, discordant, alternative="greater").pvalue
    assert float(decision.tests[1].p) == pytest.approx(greater)  # type: ignore[arg-type]
    assert [(t.units, t.differing) for t in decision.tests] == [(40, discordant)] * 3
    assert decision.criteria[0].holds is bool(exact < 0.05)
    assert decision.criteria[0].basis == ("exact test", "counts")
    assert {"episodes", "evaluations"} <= {register.config for register in decision.registers}


def test_tasks_of_several_seeds_and_steps_are_tested_together(tmp_path: Path) -> None:
    rules = ROW_RULES + FLIP
    decision = made(tmp_path, rules, SMALL_RUNS, VALIDATION, "p(flip) < 0.5")
    differences = by_task(SMALL_RUNS, VALIDATION, Fraction(1, 2), Fraction(1, 2))
    assert len(set(differences)) > 2
    assert decision.tests[0].p == sign_flip(differences).p_value
    assert decision.tests[0].units == 5


def test_a_decision_says_each_test(tmp_path: Path) -> None:
    rules = BINARY_RULES + FLIP + RANKS + family("F", "flip", "ranks")
    decision = made(tmp_path, rules, ONE_SEED, BINARY, "adjusted(flip) < 0.05")
    book = load_rulebook(rules)
    flip, ranks = (
        Engine(book, REGISTRATION, AsStored(write_rows_study(tmp_path / name, ONE_SEED, [BINARY]))).test(name)
        for name in ("flip", "ranks")
    )
    assert isinstance(flip.p, Fraction)
    assert isinstance(ranks.p, Fraction)
    adjusted = holm([flip.p, ranks.p])
    assert (flip.adjusted, ranks.adjusted) == adjusted
    (said,) = decision.as_dict()["tests"]
    assert {name: said[name] for name in ("name", "method", "over", "alternative", "n", "family")} == {
        "name": "flip",
        "method": "sign flip",
        "over": "tasks",
        "alternative": "two-sided",
        "n": 40,
        "family": "F",
    }
    assert said["p_decimal"] == float(flip.p)
    assert said["adjusted_decimal"] == float(adjusted[0])
    assert "Holm's step-down" in said["adjusted_by"]
    assert decision.tests[0].words.startswith(f"p = {float(flip.p):.4g} (sign-flip test over tasks, exact")
    assert decision.endpoints_read == ("gap",)


@pytest.mark.parametrize("zeros", ["dropped", "ranked"])
def test_signed_ranks_treat_zeros_as_declared(tmp_path: Path, zeros: str) -> None:
    evaluation = replace(VALIDATION, tasks=40)
    rules = ROW_RULES.replace("tasks = 5", "tasks = 40") + declared(
        "t", "wilcoxon", "tasks", f'zeros = "{zeros}"'
    )
    decision = made(tmp_path, rules, SMALL_RUNS, evaluation, "p(t) < 0.5")
    differences = by_task(SMALL_RUNS, evaluation, Fraction(1, 2), Fraction(1, 2))
    whole = [int(difference * 8) for difference in differences]
    one, other = (wilcoxon_test(whole, zeros=treated).p_value for treated in ("dropped", "ranked"))
    assert one != other
    assert decision.tests[0].p == (one if zeros == "dropped" else other)


@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("method", ["mcnemar", "sign flip"])
def test_an_alternative_has_its_own_p(tmp_path: Path, method: str, alternative: str) -> None:
    over = "tasks" if method == "sign flip" else ""
    rules = BINARY_RULES + declared("t", method, over, f'alternative = "{alternative}"')
    decision = made(tmp_path, rules, ONE_SEED, BINARY, "p(t) < 0.5")
    differences = by_task(ONE_SEED, BINARY, Fraction(1))
    first, discordant = sum(d > 0 for d in differences), sum(d != 0 for d in differences)
    expected = stats.binomtest(first, discordant, alternative=alternative).pvalue
    assert float(decision.tests[0].p) == pytest.approx(expected)  # type: ignore[arg-type]


def test_scores_that_are_equal_but_for_rounding_are_equal() -> None:
    """In doubles 0.1 + 0.2 is more than 0.3: the task would differ, and ties of sums would break."""
    table = [[0.1, 0.25, -0.5, 0.1], [0.2, 0.25, 0.25, 0.2], [-0.3, 0.0, 0.0, 0.0]]
    book = load_rulebook(MANY + FLIP + declared("ranks", "wilcoxon", "tasks", 'zeros = "dropped"'))
    for name, whole in (("flip", [0, 10, -5, 6]), ("ranks", [0, 3, -1, 2])):
        test = p_value(name, book, lambda _: Fraction(0), lambda _: table)
        assert (test.p, test.units, test.differing) == (sign_flip([Fraction(w) for w in whole]).p_value, 4, 3)


def test_scores_with_too_many_sums_have_no_p_and_say_why() -> None:
    rng = np.random.default_rng(1)
    book = load_rulebook(MANY + FLIP)
    test = p_value("flip", book, lambda _: Fraction(0), lambda _: rng.normal(size=(3, 40)).tolist())
    assert isinstance(test.p, Missing)
    assert "too many different sums" in test.p.reasons[0]


SEEDWISE = declared("seeds", "sign flip", "seeds") + declared(
    "signed", "wilcoxon", "seeds", 'zeros = "ranked"'
)


def test_seeds_are_tested_without_episodes() -> None:
    """The small study's differences are 0.1 and -0.1: nothing is as central."""
    decision = Engine(
        load_rulebook(RULES + SEEDWISE + rule("H", "p(seeds) <= 0.5", "p(signed) = 1")),
        REGISTRATION,
        small_study(),
    ).decide("H")
    assert [criterion.value for criterion in decision.criteria] == [1, 1]
    assert [criterion.holds for criterion in decision.criteria] == [False, True]


def test_a_missing_run_has_no_p_and_leaves_its_family_without_adjusted_ones() -> None:
    other = declared("others", "sign flip", "seeds", endpoint="other")
    rules = RULES + SEEDWISE + other + family("F", "seeds", "others")
    more = rule("H", "adjusted(seeds) <= 0.5") + rule("G", "p(seeds) <= 0.5") + rule("Y", "p(others) <= 0.5")
    engine = Engine(load_rulebook(rules + more), REGISTRATION, small_study())
    assert engine.decide("G").verdict == "miss"
    assert engine.decide("H").verdict == engine.decide("Y").verdict == "not_run"
    (said,) = engine.decide("H").as_dict()["tests"]
    assert (said["p"], said["adjusted"]) == ("1", None)
    assert said["adjusted_missing"][0].startswith("family F lacks p(others): ")
    assert "no p-value" in engine.decide("Y").tests[0].words
    assert engine.decide("H").endpoints_read == ("gap", "other")


def test_tasks_without_episodes_have_no_p() -> None:
    engine = Engine(load_rulebook(RULES + FLIP + rule("H", "p(flip) < 0.5")), REGISTRATION, small_study())
    decision = engine.decide("H")
    assert decision.verdict == "not_evaluable"
    assert decision.missing == ("gap by task takes episode rows, and the study has none",)


def test_an_amendment_adds_tests_and_families_under_new_names() -> None:
    more = amendment(
        "A1", 'adds = ["H"]', PAIRS, family("F", "pairs", "flip"), rule("H", "adjusted(pairs) < 0.05")
    )
    book = load_rulebook(BINARY_RULES + FLIP, [more])
    assert book.adjusted_with("pairs") == ("pairs", "flip")
    with pytest.raises(RuleError, match="declared already"):
        load_rulebook(BINARY_RULES + FLIP, [more.replace("pairs", "flip")])


def at_seeds(seeds: int) -> str:
    """Return the small registration on some seeds."""
    return RULES.replace("seeds = [0, 1]", f"seeds = {[*range(seeds)]}")


def three(method: str) -> str:
    """Return a family of three tests over seeds."""
    names = ("a", "b", "c")
    return "".join(declared(n, "sign flip", "seeds") for n in names) + family("F", *names, method=method)


@pytest.mark.parametrize("method", ["holm", "benjamini-hochberg"])
@pytest.mark.parametrize("seeds", [2, 4])
def test_no_p_is_smaller_than_the_smallest(method: str, seeds: int) -> None:
    """Differences with one sign have the smallest p, and three of them the smallest adjusted ones."""
    book = load_rulebook(at_seeds(seeds) + three(method))
    study = small_study()
    study.tables["runs"] = [
        row | {"run_id": f"X-{row['arm']}-{seed}", "seed": seed}
        for row in study.tables["runs"]
        if row["seed"] == 0
        for seed in range(seeds)
    ]
    study.tables["evaluations"] = [
        row | {"run_id": f"X-{arm}-{seed}", "successes": 5 + (arm == "paired")}
        for row in study.tables["evaluations"]
        if row["run_id"] == "X-paired-0"
        for arm in ARMS
        for seed in range(seeds)
    ]
    tested = Engine(book, REGISTRATION, study).test("a")
    assert not isinstance(tested.p, Missing)
    assert (tested.p, tested.adjusted) == book.smallest_p("a")


def test_eighty_tasks_are_counted_exactly(tmp_path: Path) -> None:
    evaluation = replace(BINARY, tasks=80)
    rules = BINARY_RULES.replace("tasks = 40", "tasks = 80") + FLIP
    decision = made(tmp_path, rules, ONE_SEED, evaluation, "p(flip) < 0.05")
    differences = by_task(ONE_SEED, evaluation, Fraction(1))
    signs = [sum(d > 0 for d in differences), sum(d < 0 for d in differences)]
    assert float(decision.tests[0].p) == pytest.approx(stats.binomtest(signs[0], sum(signs)).pvalue)  # type: ignore[arg-type]
