"""Endpoints and terms: what they are measured as, from which rows, and what is missing."""

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decisions.study import RULES, SmallStudy, rule, small_study
from toolkit.decisions.case import rows_query
from toolkit.decisions.evaluation import evaluate
from toolkit.decisions.measure import Indexed, IndexedRows, measure, rows_with
from toolkit.errors import DamagedError, RuleError
from toolkit.rules import values
from toolkit.rules.expressions import Binary, Name
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.values import Missing, Series, exact
from toolkit.structs import replace

BOOK = load_rulebook(RULES + rule("H", "mean(gap) > 0"))


def test_a_stored_double_counts_as_the_decimal_that_prints_it() -> None:
    assert exact(0.1) == Fraction(1, 10)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_damage(number: float) -> None:
    with pytest.raises(DamagedError, match="not finite"):
        exact(number)


PROBED = """
[endpoints.ratio]
title = "Trace ratio"
register = "probe"
outcome = { figure = "trace_paired", over = "trace_independent" }
where = { noise = "outcome", estimator = "MC" }
by = "checkpoint"
checkpoints = ["base@0", "t@20"]
unit = "ratio"
range = ["0", "1000000"]
"""


def probe_row(trajectory: str, step: int, paired: float, **facts: object) -> dict[str, object]:
    key = {"trajectory": trajectory, "step": step, "noise": "outcome", "estimator": "MC"}
    return {**key, "trace_paired": paired, "trace_independent": 4.0, **facts}


def probed(*rows: dict[str, object], rules: str = PROBED) -> object:
    book = load_rulebook(RULES + rules)
    return measure(book.endpoints["ratio"], SmallStudy({"probe": list(rows)}), book.plan)


def test_a_series_by_checkpoint_has_the_row_of_each() -> None:
    other = probe_row("base", 0, 9.0, estimator="SW"), probe_row("t", 20, 9.0, noise="transition")
    measured = probed(probe_row("base", 0, 2.0), probe_row("t", 20, 3.0), *other)
    assert isinstance(measured, Series)
    assert measured.items == (("base@0", Fraction(1, 2)), ("t@20", Fraction(3, 4)))


def test_an_endpoint_that_leaves_a_column_of_the_key_open_is_told_which() -> None:
    rows = probe_row("base", 0, 2.0), probe_row("base", 0, 3.0, estimator="SW"), probe_row("t", 20, 3.0)
    with pytest.raises(
        RuleError, match="2 rows where the endpoint needs one: it does not say which estimator"
    ) as e:
        probed(*rows, rules=PROBED.replace(', estimator = "MC"', ""))
    assert e.value.where == "endpoint ratio"
    assert e.value.found == "noise=outcome, trajectory=base, step=0, with estimator=MC or SW"
    assert "estimator in its `where`" in str(e.value.remedy)


def test_two_open_columns_are_both_named() -> None:
    rows = [
        probe_row("base", 0, 2.0, estimator=e, noise=n)
        for e in ("MC", "SW")
        for n in ("outcome", "transition")
    ]
    with pytest.raises(RuleError, match=r"4 rows .* which noise and estimator"):
        probed(*rows, rules=PROBED.replace('where = { noise = "outcome", estimator = "MC" }\n', ""))


def test_rows_with_one_key_are_damage_and_not_the_endpoints_fault() -> None:
    with pytest.raises(DamagedError, match="2 rows where the endpoint needs one") as caught:
        probed(probe_row("base", 0, 2.0), probe_row("base", 0, 3.0))
    assert not isinstance(caught.value, RuleError)


ROWS = [{"a": 1, "b": None, "c": 3}, {"a": 1, "b": "x", "c": 4}, {"a": 2, "b": "x", "c": 5}]


def test_an_index_finds_what_a_scan_finds_in_order() -> None:
    for wanted in ({"a": 1}, {"a": 1, "b": "x"}, {"b": None}, {"c": 9}, {}):
        assert rows_with(IndexedRows(ROWS), wanted) == rows_with(ROWS, wanted)


def test_a_table_is_read_once() -> None:
    study = Indexed(small_study())
    assert study.rows("runs") is study.rows("runs")
    assert study.rows("runs") == small_study().rows("runs")


@pytest.mark.parametrize(
    "fewer", [{"seeds": (0,)}, {"arms": ("paired",)}, {"steps": ()}, {}], ids=["seeds", "arms", "steps", ""]
)
def test_an_endpoint_covers_one_that_reads_fewer_of_its_rows(fewer: dict[str, Any]) -> None:
    gap = BOOK.endpoints["gap"]
    less = replace(gap, **fewer)
    assert gap.covers(less)
    assert less.covers(gap) == (less == gap)
    assert not gap.covers(replace(less, condition="elsewhere"))
    assert not gap.covers(replace(less, where={**gap.where, "regime": "elsewhere"}))


WORDS = '[words]\narm = ["chance", "optimism"]\nregime = ["calm"]\npool = ["levers"]\n'
OWN = (
    (RULES + WORDS + rule("A", "mean(gap) > 0"))
    .replace('["paired", "independent"]', '["optimism", "chance"]')
    .replace('["paired"]', '["optimism"]')
    .replace('pool = "validation", regime = "clean"', 'pool = "levers", regime = "calm"')
    .replace('scale_rewards = "group"\n', "")
)


def test_rules_speak_the_words_that_are_declared() -> None:
    book = load_rulebook(OWN)
    assert book.terms.words == {"arm": ("chance", "optimism"), "regime": ("calm",), "pool": ("levers",)}
    assert book.endpoints["gap"].arms == ("optimism", "chance")


def test_without_a_declaration_the_toolkits_hold() -> None:
    assert load_rulebook(RULES + rule("A", "mean(gap) > 0")).terms.words == {}


class Held:
    """Registers with one evaluation of each arm, as an import makes them: no scaling, nothing observed."""

    name, is_summary = "held", False

    def __init__(self, told: dict[str, object], **facts: object) -> None:
        cell = {"condition": "X", "seed": 0, "role": "primary", "status": "COMPLETE"}
        where = {"phase": "periodic", "pool": "levers", "regime": "calm", "step": 20, "episodes": 10}
        self._rows: dict[str, list[dict[str, object]]] = {
            "runs": [{"run_id": arm, "arm": arm, **cell, **facts} for arm in ("optimism", "chance")],
            "evaluations": [
                {"run_id": "optimism", "successes": 7, **where, **told},
                {"run_id": "chance", "successes": 4, **where, **(SETS if told else {})},
            ],
        }

    def has(self, table: str) -> bool:
        return table in self._rows

    def rows(self, table: str) -> list[dict[str, object]]:
        return self._rows[table]


SETS: dict[str, object] = {"tasks": 5, "episodes_per_task": 2, "task_set": "a"}
ONE_SEED = (
    OWN.replace("seeds = [0, 1]", "seeds = [0]")
    .replace("steps = [0, 20]\n", "steps = [20]\n")
    .replace('over_steps = "auc"\n', "")
)


def measured(rules: str, told: dict[str, object] | None = None, **facts: object) -> object:
    """Return the values of the gap where evaluations say what they met, if at all."""
    book = load_rulebook(rules)
    value = measure(book.endpoints["gap"], Held(told or {}, **facts), book.plan)  # type: ignore[arg-type]
    assert isinstance(value, Series)
    return value.present()


def test_runs_without_scaling_are_found() -> None:
    assert measured(ONE_SEED) == (Fraction(3, 10),)
    book = load_rulebook(ONE_SEED)
    query = rows_query(book.endpoints["gap"], book.plan, Held({}))  # type: ignore[arg-type]
    assert "scale_rewards" not in query


def test_runs_that_say_a_scaling_are_others() -> None:
    assert isinstance(measured(ONE_SEED, scale_rewards="none"), Missing)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('count = "successes"', 'count = "observed_successes"', "observed_successes"),
        ("\n[words]", "\n[training]\ngroup_size = 8\n\n[words]", "group_size None, and 8 is registered"),
    ],
    ids=["measured", "fixed"],
)
def test_a_column_that_was_left_out_is_missing_and_no_zero(old: str, new: str, reason: str) -> None:
    present = measured(ONE_SEED.replace(old, new))
    assert isinstance(present, Missing)
    assert not present.not_run
    assert reason in present.reasons[0]


def test_an_evaluation_on_the_registered_tasks_counts() -> None:
    assert measured(ONE_SEED, SETS) == (Fraction(3, 10),)


@pytest.mark.parametrize(
    "told",
    [{"tasks": 4}, {"episodes_per_task": 3}, {"task_set": "b"}],
    ids=["a task is missing", "a task was played once more", "other tasks"],
)
def test_as_many_episodes_of_other_tasks_pass_nothing(told: dict[str, object]) -> None:
    present = measured(ONE_SEED, SETS | told)
    assert isinstance(present, Missing)
    assert not present.not_run


GAP = values.Missing(not_run=False, reasons=("a gap",))
NEVER = values.Missing(not_run=True, reasons=("never run",))


def completions(truths: tuple[bool | values.Missing, ...]) -> list[tuple[bool, ...]]:
    """Return every way in which unknown values could turn out."""
    choices = [(True, False) if isinstance(t, values.Missing) else (t,) for t in truths]
    return list(product(*choices))


def agrees(answer: bool | values.Missing, outcomes: set[bool]) -> bool:
    """Whether an answer is the one that all completions share, or unknown where they differ."""
    return isinstance(answer, values.Missing) if len(outcomes) == 2 else answer is outcomes.pop()


ALL = [truths for size in (2, 3) for truths in product((True, False, GAP), repeat=size)]


@pytest.mark.parametrize("truths", ALL)
def test_an_operator_is_unknown_where_completions_differ(truths: tuple[bool | values.Missing, ...]) -> None:
    ways = completions(truths)
    assert agrees(values.kleene_all(truths), {all(way) for way in ways})
    assert agrees(values.kleene_any(truths), {any(way) for way in ways})
    assert agrees(values.kleene_majority(truths), {2 * sum(way) > len(way) for way in ways})


def test_series_of_other_members_are_not_combined() -> None:
    series = {name: values.Series("seed", ((name, Fraction(1)),)) for name in "ab"}
    with pytest.raises(RuleError, match="different members"):
        evaluate(Binary("-", Name("a"), Name("b")), lambda _, name: series[name])


def test_a_mean_is_over_all_members_and_none_while_one_is_missing() -> None:
    assert values.mean_of(values.Series("seed", (("0", Fraction(1)), ("1", Fraction(4))))) == Fraction(5, 2)
    assert values.mean_of(values.Series("seed", (("0", Fraction(1)), ("1", GAP)))) == GAP


def test_negation_keeps_what_is_unknown() -> None:
    assert values.kleene_not(GAP) is GAP
    assert values.kleene_not(True) is False


def test_missing_together_is_not_run_only_if_all_of_it_is() -> None:
    assert values.together([NEVER, NEVER]) == NEVER
    assert values.together([NEVER, GAP]) == values.Missing(not_run=False, reasons=("never run", "a gap"))


@pytest.mark.parametrize(
    ("value", "text", "decimal"),
    [
        (Fraction(71, 1920), "71/1920", 0.03698),
        (Fraction(0), "0", 0.0),
        (Fraction("0.34665099965789636"), "0.34665099965789636", 0.34665),
        (Fraction("-0.0039"), "-39/10000", -0.0039),
        (Fraction("0.27486711098878242"), "0.2748671109887824", 0.27487),
    ],
)
def test_numbers_print_exactly_and_rounded(value: Fraction, text: str, decimal: float) -> None:
    assert (values.exact_text(value), values.rounded(value)) == (text, decimal)


@given(st.fractions(-1000, 1000, max_denominator=2000), st.integers(0, 6))
def test_a_number_is_rounded_once_from_the_exact_one_and_a_tie_to_the_even_digit(value, digits) -> None:
    with localcontext(Context(prec=60)):
        known = Decimal(value.numerator) / Decimal(value.denominator)
        rounded = known.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
    assert Decimal(values.fixed(value, digits)) == rounded
    assert values.fixed(value, digits, signed=True)[0] in "+-"
