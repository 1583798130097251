"""The registered rule, simulated: against closed forms, known figures, and another way to simulate it."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.conftest import CHECKOUT
from tests.unit.decisions.study import amendment, rule
from toolkit.decisions.case import Case
from toolkit.drafting import power, simulation
from toolkit.drafting.power import Components, Power, fit, simulate
from toolkit.errors import UsageError
from toolkit.estimators import crossed_bootstrap, draw_weights, nested_bootstrap, sign_flip
from toolkit.rules.plan import Settings
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.structs import replace

TASK_SD = 0.25
RESAMPLES = 40  # enough where the interval is not the point


@pytest.fixture(scope="module")
def fitted(case: Case) -> Components:
    return fit(case.book, case.study, "H2a", task_sd=TASK_SD, rng_seed=1)


def run(case: Case, fitted: Components, rule: str = "H2a", **changes: object) -> Power:
    design = simulation.Design(0.03, fitted.seed_sd, TASK_SD, 3, None, 1000, 1, RESAMPLES)
    return simulate(case.book, rule, fitted, replace(design, **changes))  # type: ignore[arg-type]


def test_the_fit_splits_the_spread_that_was_observed(fitted: Components) -> None:
    observed = float(np.var(fitted.observed, ddof=1))
    assert fitted.observed == pytest.approx((0.05390625, -0.0015625, 0.05859375))
    assert fitted.seed_sd**2 + fitted.sampling_variance == pytest.approx(observed)
    assert 0.9**2 / 3 < fitted.sampling_variance / observed < 0.9


def test_the_success_by_step_is_the_second_arms(case: Case, fitted: Components) -> None:
    deciding = {run["run_id"] for run in case.study.rows("runs") if run["role"] in case.book.plan.roles}
    place = {"condition": "C2", "arm": "independent", "phase": "periodic", "regime": "faults_p025"}
    rows = [row for row in case.study.rows("evaluations") if place.items() <= row.items()]
    for step, success in zip(range(0, 101, 20), fitted.success["c2_auc"], strict=True):
        at = [
            row["successes"] / row["episodes"]
            for row in rows
            if row["step"] == step and row["run_id"] in deciding
        ]
        assert success == pytest.approx(sum(at) / 3)


@pytest.mark.parametrize(("effect", "known"), [(0.0, 0.046), (0.05, 0.75)])
def test_the_operating_characteristics_at_a_seed_spread_of_034_are_the_known_ones(
    case: Case, fitted: Components, effect: float, known: float
) -> None:
    """What passes overstates the effect."""
    simulated = run(case, fitted, effect=effect, simulations=800)
    assert simulated.pass_probability == pytest.approx(known, abs=0.05)
    assert simulated.mean_estimate_passed is not None
    assert simulated.mean_estimate_passed > max(effect, 0.03)


@pytest.mark.parametrize(
    ("rule", "effect", "tasks"),
    [("H2a", 0.05, 200), ("H2a", -0.05, None), ("H3", 0.05, 30), ("H5", -0.03, None), ("H2b", 0.03, None)],
)
def test_the_mean_of_simulated_studies_is_the_effect_on_every_endpoint(case, rule, effect, tasks) -> None:
    components = fit(case.book, case.study, rule, task_sd=TASK_SD, rng_seed=1)
    registered = case.book.rule(rule)
    share = simulation.trained_share(case.book.endpoints[registered.estimate])
    design = simulation.Design(effect, 0.0, 0.1, 3, tasks, 200, 1, resamples=10)
    studies = list(power.studies(case.book, registered, components, design))
    for name in studies[0].series:
        truth = effect / share * simulation.trained_share(case.book.endpoints[name])
        values = np.array([[float(v) for v in study.series[name]] for study in studies])
        assert values.mean() == pytest.approx(truth, abs=4 * values.std() / values.size**0.5)
        for study in studies[:5]:
            assert simulation.by_task(case.book.endpoints[name], study.counts[name]).mean() == pytest.approx(
                float(sum(study.series[name])) / 3
            )


def test_before_training_the_arms_share_their_episodes_and_tasks_differ_as_much_as_is_said(
    case: Case, fitted: Components
) -> None:
    endpoint = replace(case.book.endpoints["c2_auc"], schedules=4000)
    rng, gaps = np.random.default_rng(1), np.zeros((4, 2))
    counts = simulation.draw_counts(rng, endpoint, fitted.success["c2_auc"], gaps, tasks=2000, task_sd=0.12)
    assert (counts[:, :, 0, 0] == counts[:, :, 1, 0]).all()
    assert (counts[:, :, 0, 1] != counts[:, :, 1, 1]).any()
    assert (counts[:, :, 1, 2] / 4000).std() == pytest.approx(0.12, rel=0.03)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"effect": 0.4}, "would leave"),
        ({"effect": -0.6}, "would leave"),
        ({"seeds": 1}, "expected two seeds"),
        ({"seeds": 0}, "expected a seed"),
        ({"simulations": 0}, "a simulation"),
        ({"seed_sd": -0.1}, "spreads in"),
    ],
)
def test_a_design_that_makes_no_sense_is_refused(case, fitted, change, said) -> None:
    with pytest.raises(UsageError, match=said):
        run(case, fitted, **change)


def test_the_spread_of_tasks_that_is_left_is_reported(case: Case, fitted: Components) -> None:
    simulated = run(case, fitted, simulations=10)
    share = 0.9
    top = max(fitted.success["c2_auc"]) + (0.03 + 4 * fitted.seed_sd) / share
    bottom = min(fitted.success["c2_auc"]) + (0.03 - 4 * fitted.seed_sd) / share
    assert simulated.task_sd["c2_auc"] == pytest.approx(min(0.25, min(1 - top, bottom) / 3**0.5))


def test_of_two_readings_the_binding_one_decides(case: Case) -> None:
    """The literal reading of H2b asks for the final test under flips, the binding one for the clean test."""
    components = fit(case.book, case.study, "H2b", task_sd=TASK_SD, rng_seed=1)
    rule = case.book.rule("H2b")
    design = simulation.Design(0.03, 0.0, TASK_SD, 3, None, 40, 1, RESAMPLES)
    passing = next(s for s in power.studies(case.book, rule, components, design) if s.passes(rule))
    below = (Fraction(-1, 10),) * 3
    assert replace(passing, series={**passing.series, "c4_final_flips": below}).passes(rule)
    assert not replace(passing, series={**passing.series, "c4_final_clean": below}).passes(rule)


def test_without_any_spread_a_large_effect_always_passes_and_none_never(case, fitted) -> None:
    assert run(case, fitted, effect=0.2, seed_sd=0.0, simulations=100).passed == 100
    assert run(case, fitted, effect=-0.2, seed_sd=0.0, simulations=100).passed == 0


def test_the_interval_covers_the_true_effect(case: Case, fitted: Components) -> None:
    simulations, resamples = 60, 300
    simulated = run(case, fitted, seeds=10, simulations=simulations, resamples=resamples)
    rule = case.book.rule("H2a")
    covered = 0
    for study in power.studies(case.book, rule, fitted, simulated.design):
        table = simulation.by_task(case.book.endpoints["c2_auc"], study.counts["c2_auc"])
        weights = draw_weights(*table.shape, resamples, simulated.design.rng_seed)
        interval = crossed_bootstrap(table, weights, 0.95)
        covered += interval.low <= 0.03 <= interval.high
    assert simulated.covered == covered
    assert covered > 0.925 * simulations


def test_a_sign_can_be_wrong_where_the_effect_is_small(case: Case, fitted: Components) -> None:
    simulated = run(case, fitted, effect=0.002, simulations=500)
    assert simulated.wrong_sign is not None
    assert simulated.excluded_zero is not None
    assert 0 < simulated.wrong_sign < simulated.excluded_zero
    negative = run(case, fitted, effect=-0.06, simulations=100)
    assert negative.excluded_zero is not None
    assert negative.excluded_zero > 30
    assert negative.wrong_sign == 0
    assert run(case, fitted, effect=0.0, simulations=50).wrong_sign is None


@pytest.mark.parametrize("rule", ["H1a", "H1b", "P13", "gate2", "P12"])
def test_a_rule_that_reads_something_else_cannot_be_simulated(case: Case, rule: str) -> None:
    with pytest.raises(UsageError):
        fit(case.book, case.study, rule, task_sd=TASK_SD, rng_seed=1)


def with_rule(case: Case, more: str, *tests: str, estimate: str = "c2_auc", interval: str = "") -> RuleBook:
    """Return the case's rules with one more, by an amendment."""
    named = f'estimate = "{estimate}"' + (f'\ninterval = "{interval}"' if interval else "")
    added = amendment("A9", 'adds = ["S"]', more, rule("S", *tests, more=named))
    return load_rulebook(case.registration.rules, [*(a.rules for a in case.registration.amendments), added])


def test_a_rule_on_students_interval_passes_as_often_as_a_t_test(case: Case, fitted: Components) -> None:
    """Seeds' differences are near enough to normal: the size of the test is that of its level."""
    t_90 = '[intervals.c2_t]\nendpoint = "c2_auc"\nlevel = "0.90"\nmethod = "t over seeds"\n'
    book = with_rule(case, t_90, "lower(c2_t) > 0", interval="c2_t")
    design = simulation.Design(0.0, fitted.seed_sd, 0.0, 12, None, 500, 4)
    found = simulate(book, "S", fitted, design)
    assert found.pass_probability == pytest.approx(0.05, abs=4 * (0.05 * 0.95 / 500) ** 0.5)
    assert found.covered is not None
    assert found.covered / 500 == pytest.approx(0.90, abs=4 * (0.09 / 500) ** 0.5)


TESTS = (CHECKOUT / "tests/fixtures/rules/family_of_two.toml").read_text(encoding="utf-8")


def test_a_rule_on_exact_tests_passes_where_other_programs_reject(case: Case, fitted: Components) -> None:
    tests = ("p(flip) <= 0.1", "p(ranks) <= 0.2", "adjusted(flip) <= 0.15")
    book = with_rule(case, TESTS, *tests)
    design = simulation.Design(0.02, 0.03, 0.1, 8, None, 30, 4)
    passed = 0
    for study in power.studies(book, book.rule("S"), fitted, design):
        table = simulation.by_task(book.endpoints["c2_auc"], study.counts["c2_auc"])
        greater = float(sign_flip(study.differences).p_value) / 2  # exact where the mean is above zero
        flip = greater if sum(study.differences) > 0 else 1.0
        # Differences of whole numbers, whose ties doubles would break.
        exactly = np.rint(table.sum(axis=0) * 10 * case.book.endpoints["c2_auc"].schedules)
        signs = stats.wilcoxon(exactly, method="approx", correction=False).pvalue
        ours = study._resolve("p", "ranks")  # noqa: SLF001
        assert float(ours) == pytest.approx(signs, abs=0.02)
        adjusted = min(2 * flip, 1.0) if flip <= float(ours) else max(flip, min(1.0, 2 * float(ours)))
        expected = flip <= 0.1 and float(ours) <= 0.2 and adjusted <= 0.15
        assert study.passes(book.rule("S")) == expected
        passed += expected
    assert 3 < passed < 27
    assert simulate(book, "S", fitted, design).passed == passed


SPREAD = '[statistics.spread]\ntitle = "Spread"\nformula = "{}"\nunit = "fraction²"\nrange = ["0", "1"]\n'


def test_a_statistic_of_what_is_simulated_is_simulated_too(case: Case, fitted: Components) -> None:
    book = with_rule(case, SPREAD.format("variance(c2_auc)"), "spread <= 0.0012")
    design = simulation.Design(0.0, 0.03, 0.0, 12, None, 150, 4)
    found = simulate(book, "S", fitted, design)
    rng = np.random.default_rng(5)
    spread = (0.03**2 + fitted.sampling_variance) * rng.chisquare(11, 100_000) / 11
    expected = (spread <= 0.0012).mean()
    assert 0.1 < expected < 0.9
    assert found.pass_probability == pytest.approx(expected, abs=0.15)


def test_the_power_of_a_rule_whose_estimate_is_a_statistic_is_refused(case: Case, fitted: Components) -> None:
    book = with_rule(case, SPREAD.format("variance(c2_auc)"), "spread > 0.001", estimate="spread")
    with pytest.raises(UsageError, match="its estimate is a statistic"):
        simulate(book, "S", fitted, simulation.Design(0.0, 0.03, 0.0, 3, None, 10, 4))


def with_one_seed(book: RuleBook) -> RuleBook:
    """Return rules whose endpoints read the first seed alone."""
    return replace(book, endpoints={name: replace(e, seeds=(0,)) for name, e in book.endpoints.items()})


def test_one_seed_is_too_few_for_an_interval_of_seeds(case: Case) -> None:
    with pytest.raises(UsageError, match="expected two seeds") as caught:
        fit(with_one_seed(case.book), case.study, "H2a", task_sd=TASK_SD, rng_seed=1)
    assert "c2_auc_95: percentile bootstrap" in str(caught.value.found)


TASKWISE = {"estimate": "c2_final_noisy", "interval": "c2_tasks"}
OVER_TASKS = """[intervals.c2_tasks]
endpoint = "c2_final_noisy"
level = "0.95"
method = "{}"
"""


@pytest.mark.parametrize("method", ["t over tasks", "bca bootstrap"])
def test_a_rule_on_an_interval_over_tasks_is_simulated_with_one_seed(case: Case, method: str) -> None:
    """The normal approximation: a difference of two rates on 200 tasks."""
    book = with_rule(case, OVER_TASKS.format(method), "lower(c2_tasks) > 0", **TASKWISE)
    components = fit(with_one_seed(book), case.study, "S", task_sd=0.0, rng_seed=1)
    success = components.success["c2_final_noisy"][0]
    assert (components.seed_sd, len(components.observed)) == (0.0, 1)
    endpoint = book.endpoints["c2_final_noisy"]
    expected = 2 * success * (1 - success) / (endpoint.tasks * endpoint.schedules)
    assert components.sampling_variance == pytest.approx(expected, rel=0.25)
    design = simulation.Design(0.05, 0.0, 0.0, 1, 200, 200, 4, 500)
    found = simulate(book, "S", components, design)
    rates = success, success + 0.05
    error = (sum(p * (1 - p) for p in rates) / (200 * endpoint.schedules)) ** 0.5
    assert found.pass_probability == pytest.approx(stats.norm.sf(1.96 - 0.05 / error), abs=0.09)
    assert (found.level, found.level_missed) == (0.95, 0.0)


def test_an_interval_that_covers_more_or_less_than_it_says_is_noticed(case: Case, fitted: Components) -> None:
    """Tasks alone do not tell what seeds add; crossed resamples count the episodes' noise twice."""
    narrow = with_rule(case, OVER_TASKS.format("t over tasks"), "lower(c2_tasks) > 0", **TASKWISE)
    crossed = with_rule(case, OVER_TASKS.format("percentile bootstrap"), "lower(c2_tasks) > 0", **TASKWISE)
    design = simulation.Design(0.0, 0.05, 0.1, 5, None, 300, 4, 200)
    alone = replace(design, seed_sd=0.0)
    assert simulate(narrow, "S", fitted, design).level_missed < -0.1
    assert simulate(narrow, "S", fitted, alone).level_missed == 0
    assert simulate(crossed, "S", fitted, alone).level_missed > 0.03


def test_a_nested_interval_is_simulated_as_one(case: Case, fitted: Components) -> None:
    nested = OVER_TASKS.format("percentile bootstrap") + 'crossing = "nested"\n'
    book = with_rule(case, nested, "lower(c2_tasks) > 0", **TASKWISE)
    design = simulation.Design(0.0, 0.0, 0.1, 5, None, 3, 4, 500)
    for study in power.studies(book, book.rule("S"), fitted, design):
        theirs = nested_bootstrap(
            simulation.by_task(book.endpoints["c2_final_noisy"], study.counts["c2_final_noisy"]), 500, 4, 0.95
        )
        assert study.interval == (theirs.low, theirs.high)


def test_arms_that_share_their_samples_keep_their_rates_and_differ_as_much_less_as_is_said() -> None:
    """Of an episode decided alike, the difference varies by |gap| (1 - |gap|); of another, by both arms'."""
    rng, ratio = np.random.default_rng(4), 5.0
    for rates in ((0.4, 0.4), (0.55, 0.4), (0.3, 0.4), (1.0, 1.0), (0.0, 1.0)):
        given = np.broadcast_to(np.array(rates)[:, None, None], (400, 10, 2, 1, 10))
        counts = simulation._coupled_counts(rng, 8, given, 1 - 1 / ratio)  # noqa: SLF001
        p, q = rates
        for arm, rate in enumerate(rates):
            found = np.bincount(counts[:, :, arm].ravel(), minlength=9) / 40_000
            assert found == pytest.approx(stats.binom.pmf(range(9), 8, rate), abs=0.011)
        gap = abs(p - q)
        each = (1 - 1 / ratio) * gap * (1 - gap) + (p * (1 - p) + q * (1 - q)) / ratio
        differences = (counts[:, :, 0] - counts[:, :, 1]).ravel()
        assert differences.mean() == pytest.approx(8 * (p - q), abs=0.05)
        assert differences.var() == pytest.approx(8 * each, rel=0.05, abs=1e-12)


def test_a_ratio_above_one_finds_an_effect_more_often_and_covers_it(case: Case, fitted: Components) -> None:
    own, shared = (
        run(case, fitted, "H2a", seed_sd=0.0, effect=0.04, variance_ratio=ratio, simulations=200)
        for ratio in (1.0, 20.0)
    )
    assert shared.pass_probability > own.pass_probability + 0.1
    with pytest.raises(UsageError, match="1 or more"):
        run(case, fitted, variance_ratio=0.5)


def test_a_study_that_shares_its_samples_is_fitted_by_what_was_observed(case: Case) -> None:
    sharing = [replace(cell, settings=Settings(sampling="shared")) for cell in case.book.plan.cells]
    book = replace(case.book, plan=replace(case.book.plan, cells=tuple(sharing)))
    own, shared, given = (
        fit(case.book, case.study, "H2a", task_sd=TASK_SD, rng_seed=1),
        fit(book, case.study, "H2a", task_sd=TASK_SD, rng_seed=1),
        fit(book, case.study, "H2a", task_sd=TASK_SD, rng_seed=1, variance_ratio=10.0),
    )
    observed = float(np.var(own.observed, ddof=1))
    assert own.variance_ratio == 1
    assert shared.variance_ratio == pytest.approx(max(1.0, own.sampling_variance / observed))
    assert given.variance_ratio == 10
    assert given.sampling_variance == pytest.approx(own.sampling_variance / 10)
    assert given.seed_sd**2 == pytest.approx(observed - own.sampling_variance / 10)
