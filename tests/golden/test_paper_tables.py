"""Every number in the paper's tables that the registers can give is the one the registers give.

The expected cells were taken from the paper's LaTeX source by `extract_tables.py`. The figures are
recomputed here with SQL and fractions, not with the code under test.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from toolkit.registers.query import Answer, asking
from toolkit.registers.study import Study

TABLES = json.loads((Path(__file__).parent / "paper_tables.json").read_text(encoding="utf-8"))
STEPS = (0, 20, 40, 60, 80, 100)
FINAL_REGIMES = ("clean", "faults_p010", "faults_p025", "held_out_types", "challenge")
NAMES = {"P": "paired", "I": "independent"}


def printed_as(value: Fraction | float, cell: str) -> bool:
    """Whether a value rounds to a printed cell; an exact tie may go either way."""
    digits = len(cell.partition(".")[2])
    target = Fraction(Decimal(cell.lstrip("+")))
    return abs(Fraction(value) - target) <= Fraction(1, 2 * 10**digits)


Ask = Callable[[str], Answer]


class Figures:
    """The published figures, read with SQL."""

    def __init__(self, ask: Ask) -> None:
        counts = "SELECT run_id, phase, regime, step, successes, episodes FROM evaluations"
        self.success = {tuple(key): Fraction(won, of) for *key, won, of in ask(counts).rows}
        runs = ask("SELECT condition, arm, seed, run_id, role, accelerator FROM runs").rows
        self.run = {(c, a, s): r for c, a, s, r, role, _ in runs if role != "replication"}
        self.replication = next(r for *_, r, role, _ in runs if role == "replication")
        self.accelerator = {r: accelerator for _, _, _, r, _, accelerator in runs}

    def curve(self, run: str, regime: str) -> list[Fraction]:
        return [self.success[run, "periodic", regime, step] for step in STEPS]

    def auc(self, run: str, regime: str) -> Fraction:
        weights = [Fraction(w, 10) for w in (1, 2, 2, 2, 2, 1)]
        return sum((w * v for w, v in zip(weights, self.curve(run, regime), strict=True)), Fraction(0))

    def final(self, run: str, regime: str) -> Fraction:
        return self.success[run, "final", regime, 100]


@pytest.fixture(scope="module")
def ask(published: Study) -> Iterator[Ask]:
    with asking(published) as put:
        yield put


@pytest.fixture(scope="module")
def figures(ask: Ask) -> Figures:
    return Figures(ask)


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def learning_rows(figures: Figures, condition: str, validation: str, final: str) -> list[list[Fraction]]:
    """Return AUC (paired, independent, difference) and final percent (the same) by seed, then their means."""
    rows = []
    for seed in range(3):
        paired, independent = (figures.run[condition, arm, seed] for arm in ("paired", "independent"))
        aucs = [figures.auc(run, validation) for run in (paired, independent)]
        finals = [100 * figures.final(run, final) for run in (paired, independent)]
        rows.append([*aucs, aucs[0] - aucs[1], *finals, finals[0] - finals[1]])
    return [*rows, [mean(list(column)) for column in zip(*rows, strict=True)]]


@pytest.mark.parametrize(
    ("table", "condition", "validation", "final"),
    [("c2", "C2", "faults_p025", "faults_p025"), ("c4", "C4", "clean", "clean")],
)
def test_learning_tables(figures: Figures, table: str, condition: str, validation: str, final: str) -> None:
    expected = learning_rows(figures, condition, validation, final)
    for row, values in zip(TABLES[table][:4], expected, strict=True):
        for cell, value in zip(row[1:], values, strict=True):
            assert printed_as(value, cell), (table, row[0], cell, float(value))


def test_clean_reference_of_the_c4_table(figures: Figures) -> None:
    runs = [figures.run["C0", "clean", seed] for seed in range(2)]
    _, auc, _, _, final, *_ = TABLES["c4"][4]
    assert printed_as(mean([figures.auc(run, "clean") for run in runs]), auc)
    assert printed_as(100 * mean([figures.final(run, "clean") for run in runs]), final)


def test_secondary_endpoints_of_c2(figures: Figures) -> None:
    rows = []
    for seed in range(3):
        pair = [figures.run["C2", arm, seed] for arm in ("paired", "independent")]
        levels = [mean(figures.curve(run, "challenge")[2:5]) for run in pair]
        challenge = [figures.final(run, "challenge") for run in pair]
        held_out = [figures.final(run, "held_out_types") for run in pair]
        rows.append([levels[0] - levels[1], *challenge, *held_out, held_out[0] - held_out[1]])
    rows.append([mean(list(column)) for column in zip(*rows, strict=True)])
    for row, values in zip(TABLES["c2_secondary"], rows, strict=True):
        for cell, value in zip(row[1:], values, strict=True):
            assert printed_as(100 * value, cell), (row[0], cell, float(value))


@pytest.mark.parametrize("row", TABLES["finals"], ids=lambda row: row[0])
def test_final_success(figures: Figures, row: list[str]) -> None:
    condition, arm, which = row[0].split()
    seeds = range(2 if condition == "C0" else 3) if which == "mean" else [int(which)]
    for regime, cell in zip(FINAL_REGIMES, row[1:], strict=True):
        value = mean(
            [figures.final(figures.run[condition, NAMES.get(arm, arm), seed], regime) for seed in seeds]
        )
        assert printed_as(100 * value, cell), (row[0], regime, cell, float(value))


@pytest.mark.parametrize("row", TABLES["curves"], ids=lambda row: row[0])
def test_learning_curves(figures: Figures, row: list[str]) -> None:
    condition, arm, seed = row[0].split()
    run = figures.run[condition, NAMES.get(arm, arm), int(seed)]
    regime = "faults_p025" if condition == "C2" else "clean"
    assert figures.accelerator[run] == row[1]
    for cell, value in zip(row[2:8], figures.curve(run, regime), strict=True):
        assert printed_as(100 * value, cell)
    assert printed_as(figures.auc(run, regime), row[8])


def test_cross_stack_replication(figures: Figures) -> None:
    runs = {"MI300X": figures.replication, "H100": figures.run["C4", "paired", 1]}
    for accelerator, *cells in TABLES["cross_stack"]:
        run = runs[accelerator]
        assert figures.accelerator[run] == accelerator
        values = [100 * v for v in figures.curve(run, "clean")]
        values += [figures.auc(run, "clean"), 100 * figures.final(run, "clean")]
        assert all(printed_as(v, cell) for v, cell in zip(values, cells, strict=True))


@pytest.mark.parametrize("row", TABLES["groups"], ids=lambda row: row[0])
def test_training_groups_and_luck_shares(ask: Ask, figures: Figures, row: list[str]) -> None:
    condition, arm, seed = row[0].split()
    run = figures.run[condition, NAMES.get(arm, arm), int(seed)]
    counts = "SELECT groups, all_correct, spurious, zero_variance, mean_max_abs_advantage FROM groups_summary"
    ((groups, correct, spurious, equal, advantage),) = ask(f"{counts} WHERE run_id = '{run}'").rows
    shares = f"SELECT luck_share FROM luck_share_summary WHERE run_id = '{run}' AND step IN (0, 100)"
    luck = ask(f"{shares} ORDER BY step").rows
    assert str(correct) == row[1]
    # The paper's table defines the spurious rate for C4 only.
    assert (condition == "C4") == (row[2] != "--")
    assert spurious == 0 if row[2] == "--" else printed_as(Fraction(spurious, correct), row[2])
    assert printed_as(Fraction(equal, groups), row[3])
    assert printed_as(advantage, row[4])
    assert [printed_as(value, cell) for (value,), cell in zip(luck, row[5:], strict=True)] == [True, True]


PROBE = """
SELECT o.condition_left / o.condition_right, o.trace_paired / o.trace_independent,
       os.trace_paired / os.trace_independent, t.trace_paired / t.trace_independent,
       ts.trace_paired / ts.trace_independent, t.trace_paired / t.trace_stratified
FROM probe o JOIN probe os USING (trajectory, step) JOIN probe t USING (trajectory, step)
     JOIN probe ts USING (trajectory, step)
WHERE o.noise = 'outcome' AND o.estimator = 'MC' AND os.noise = 'outcome' AND os.estimator = 'SW'
  AND t.noise = 'transition' AND t.estimator = 'MC' AND ts.noise = 'transition' AND ts.estimator = 'SW'
  AND trajectory = '{0}' AND step = {1}
"""
PROBE_OUTCOME = """
SELECT condition_left / 1e5, condition_right / 1e5, trace_paired / 1e5, trace_independent / 1e5,
       100 * clean_successes / clean_rollouts, 100 * masked_rollouts / clean_rollouts, weight_mean
FROM probe JOIN probe_checkpoints USING (trajectory, step)
WHERE noise = 'outcome' AND estimator = 'MC' AND trajectory = '{0}' AND step = {1}
"""
PROBE_TRANSITION = """
SELECT trace_paired / 1e5, trace_independent / 1e5, trace_stratified / 1e5, mean_norm_paired,
       mean_norm_independent, cosine
FROM probe WHERE noise = 'transition' AND estimator = 'MC' AND trajectory = '{0}' AND step = {1}
"""
PROBE_FRACTIONS = """
SELECT o.trace_within_independent / o.trace_independent, t.trace_within_independent / t.trace_independent,
       t.reward_contrast_paired, t.reward_contrast_independent
FROM probe o JOIN probe t USING (trajectory, step)
WHERE o.noise = 'outcome' AND o.estimator = 'MC' AND t.noise = 'transition' AND t.estimator = 'MC'
  AND trajectory = '{0}' AND step = {1}
"""


@pytest.mark.parametrize(
    ("table", "query"),
    [
        ("probe", PROBE),
        ("probe_outcome", PROBE_OUTCOME),
        ("probe_transition", PROBE_TRANSITION),
        ("probe_fractions", PROBE_FRACTIONS),
    ],
)
def test_probe_tables(ask: Ask, table: str, query: str) -> None:
    for trajectory, step, *cells in TABLES[table]:
        (values,) = ask(query.format(trajectory, step)).rows
        for value, cell in zip(values, cells, strict=True):
            assert printed_as(value, cell), (table, trajectory, step, cell, value)


def test_every_table_of_the_paper_is_checked() -> None:
    learning = {"c2": 28, "c4": 31, "c2_secondary": 28, "finals": 114, "curves": 126, "groups": 90}
    probes = {"probe": 64, "probe_outcome": 72, "probe_transition": 64, "probe_fractions": 48}
    numeric = {name: sum(cell != "--" for row in rows for cell in row) for name, rows in TABLES.items()}
    assert numeric == {**learning, "cross_stack": 18, **probes}


@pytest.mark.parametrize(
    ("endpoint", "level", "low", "high", "scale"),
    [
        ("c2_auc", "0.95", "-0.004", "+0.078", 1),
        ("c2_challenge", "0.95", "-1.0", "+12.2", 100),
        ("c2_held_out", "0.90", "-0.4", "+5.2", 100),
        ("c4_auc", "0.95", "-0.029", "+0.033", 1),
    ],
)
def test_intervals_of_the_outcome_table(ask, endpoint, level, low, high, scale) -> None:
    """Table tab:outcomes and the abstract; the registers hold the four printed decimals."""
    query = f"SELECT low, high FROM intervals WHERE endpoint = '{endpoint}' AND level = {level}"
    (ends,) = ask(query).rows
    assert all(printed_as(scale * Fraction(end), cell) for end, cell in zip(ends, (low, high), strict=True))


def test_mechanism_figures_of_the_outcome_table(ask: Ask) -> None:
    """Table tab:outcomes, H1a: luck share 0.33 to 0.38, lower bounds above 0.20, spurious 0.558 and 0."""
    ((least, most, bound),) = ask(
        "SELECT min(luck_share), max(luck_share), min(interval_low) FROM luck_share_summary "
        "WHERE condition = 'C2' AND step = 0",
    ).rows
    assert printed_as(least, "0.33")
    assert printed_as(most, "0.38")
    assert bound > Decimal("0.20")
    rates = ask(
        "SELECT runs.arm, sum(spurious), sum(all_correct) FROM groups_summary JOIN runs USING (run_id) "
        "WHERE runs.condition = 'C4' AND role <> 'replication' GROUP BY ALL ORDER BY ALL",
    ).rows
    assert [(int(a), int(b)) for _, a, b in rates] == [(2080, 3726), (0, 3989)]
