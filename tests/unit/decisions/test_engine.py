"""Verdicts: every combination of what holds, what does not, and what is missing."""

from fractions import Fraction

import pytest

from tests.unit.decisions import study as made
from tests.unit.decisions.study import RULES, SmallStudy, rule, small_study
from toolkit.decisions.engine import Engine
from toolkit.errors import UsageError
from toolkit.rules.rulebook import load_rulebook

HOLDS, LOST, GAP, NEVER = "mean(gap) = 0", "each(gap > 0)", "lower(gap_95) > 0", "mean(other) > 0"


def engine(rules: str, study: SmallStudy | None = None) -> Engine:
    return Engine(load_rulebook(RULES + rules), ("small", ""), study or small_study())


def test_a_superseded_prediction_keeps_its_original_verdict() -> None:
    decision = engine(rule("P", LOST, kind="prediction", more='superseded = "Later changed."')).decide("P")
    assert (decision.verdict, decision.original_verdict) == ("superseded", "missed")


def test_the_binding_reading_decides_and_disagreement_shows() -> None:
    more = 'binding = "strict"\nreadings = { strict = "All.", loose = "Mean." }'
    text = rule("H", f"strict: {LOST}", f"loose: {HOLDS}", HOLDS, more=more)
    decision = engine(text).decide("H")
    assert decision.verdict == "miss"
    assert decision.readings == {"strict": "miss", "loose": "pass"}
    assert decision.as_dict()["readings_agree"] is False


def test_a_decision_is_printed_with_what_there_is_to_say() -> None:
    printed = engine(rule("H", "pooled < 1")).decide("H").as_dict()
    always = "rule kind title study verdict evidence criteria estimate interval registration origin registers"
    assert list(printed) == always.split()
    (criterion,) = printed["criteria"]
    assert list(criterion) == ["id", "text", "test", "value", "decimal", "basis", "holds"]
    (unknown,) = engine(rule("H", NEVER)).decide("H").as_dict()["criteria"]
    assert unknown["holds"] is None
    assert unknown["missing"]


def test_a_lost_part_is_a_lost_rule_to_others_even_while_a_part_is_unknown() -> None:
    two = engine(rule("A", LOST, NEVER, kind="prediction") + rule("B", "not(passes(A))"))
    assert (two.decide("A").verdict, two.decide("A").missed) == ("not_run", True)
    assert two.decide("B").verdict == "pass"


@pytest.mark.parametrize(
    ("test", "configs"),
    [(GAP, ["evaluations", "intervals", "runs"]), ("pooled < 1", ["groups_summary", "runs"])],
)
def test_a_decision_names_every_register_it_read(test: str, configs: list[str]) -> None:
    study = small_study()
    study.tables["intervals"] = []
    decision = engine(rule("A", test) + rule("B", "passes(A)"), study).decide("B")
    assert [register.config for register in decision.registers] == configs


def test_a_long_chain_of_rules_is_decided() -> None:
    text = rule("R0", HOLDS) + "".join(
        rule(f"R{n}", f"all(passes(R{n - 1}), passes(R{max(0, n - 2)}))") for n in range(1, 60)
    )
    assert engine(text).decide("R59").verdict == "pass"


def test_curves_are_those_of_the_endpoint_and_its_replications() -> None:
    study = small_study()
    study.tables["runs"].append(made.run_row("X", "paired", 1, run_id="again", role="replication"))
    study.tables["evaluations"] += [made.evaluation_row("again", step, 9) for step in (0, 20)]
    deciding = engine(rule("A", HOLDS), study)
    points = {(p.arm, p.series, p.step): p.success for p in deciding.curve("gap")}
    assert len(points) == 2 * 2 * 2 + 2 * 2 + 2
    assert points["paired", "mean", 0] == Fraction(11, 20)
    assert points["paired", "replication", 20] == Fraction(9, 10)
    assert deciding.curve("other") == ()


def test_a_mean_curve_needs_every_seed() -> None:
    study = small_study()
    study.tables["evaluations"] = [
        row for row in study.tables["evaluations"] if (row["run_id"], row["step"]) != ("X-paired-1", 20)
    ]
    curve = engine(rule("A", HOLDS), study).curve("gap")
    means = {(p.arm, p.step) for p in curve if p.series == "mean"}
    assert means == {("paired", 0), ("independent", 0), ("independent", 20)}


@pytest.mark.parametrize(("is_summary", "basis"), [(True, "figures as published"), (False, "figures")])
def test_a_criterion_says_what_it_rests_on(is_summary: bool, basis: str) -> None:
    figure = (
        'outcome = { figure = "mean_max_abs_advantage" }\nby = "run"\nunit = "number"\nrange = ["0", "9"]\n'
    )
    runs = 'condition = "X"\narms = ["paired"]\nseeds = [0, 1]\nregister = "groups_summary"\n'
    text = f'[endpoints.advantage]\ntitle = "Advantage"\n{figure}{runs}'
    study = small_study()
    study.is_summary = is_summary
    for row in study.tables["groups_summary"]:
        row["mean_max_abs_advantage"] = 1.5
    text += rule("A", "mean(advantage) = 1.5", HOLDS, GAP, "passes(B)") + rule("B", HOLDS)
    bases = [criterion.basis for criterion in engine(text, study).decide("A").criteria]
    assert bases == [(basis,), ("counts",), ("interval not available",), ("rules",)]


def test_an_unknown_rule_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no rule 'H9'"):
        engine(rule("A", HOLDS)).decide("H9")


def test_a_rule_names_the_amendments_that_it_rests_on() -> None:
    change = made.amendment("A1", 'replaces = ["A"]', rule("A", LOST))
    book = load_rulebook(RULES + rule("A", HOLDS) + rule("B", "passes(A)"), [change])
    decision = Engine(book, ("small", ""), small_study(), {"A1": "digest"}).decide("B")
    assert decision.verdict == "miss"
    assert decision.amendment is None
    assert [(ref.id, ref.sha256) for ref in decision.rests_on] == [("A1", "digest")]


@pytest.mark.parametrize(
    ("test", "against"),
    [
        ("max(gap) > pooled", Fraction(1, 10)),
        ("each(gap < last(gap))", Fraction(-1, 10)),
        ("mean(gap) >= 0.03", None),
        ("mean(gap) > -0.03", None),
        ("all(mean(gap) > 0, pooled > max(gap))", None),
        ("passes(A)", None),
    ],
)
def test_a_criterion_that_compares_two_numbers_says_both(test: str, against: Fraction | None) -> None:
    (criterion,) = engine(rule("A", HOLDS) + rule("H", test)).decide("H").criteria
    assert criterion.against == against
