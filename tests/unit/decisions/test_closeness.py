"""Close calls: what other random numbers could turn is said, and only that."""

from fractions import Fraction

import pytest

from tests.unit.decisions.rows_study import REGISTRATION, ROW_RULES, VALIDATION, AsStored, write_rows_study
from tests.unit.decisions.study import rule
from toolkit.decisions.decision import Decision
from toolkit.decisions.engine import Engine, close_evidence
from toolkit.decisions.intervals import Interval
from toolkit.registers.study import Study
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.values import Missing
from toolkit.structs import replace

# With few tasks the means lie on so coarse a lattice that neighbours of an end are the end.
RULES = ROW_RULES.replace("tasks = 5", "tasks = 64")
ERRORS = (Fraction("0.001"), Fraction("0.001"))


def interval(low: str, high: str, errors: tuple[Fraction, Fraction] | None = ERRORS) -> Interval:
    ends = (Fraction(low), Fraction(high))
    return Interval("i", "gap", Fraction("0.95"), *ends, "computed", "", errors)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return write_rows_study(tmp_path_factory.mktemp("rows"), evaluations=[replace(VALIDATION, tasks=64)])


def decide(study: Study, *tests: str, more: str = "", name: str = "H", others: str = "") -> Decision:
    book = load_rulebook(RULES + others + rule(name, *tests, more=more))
    return Engine(book, REGISTRATION, AsStored(study)).decide(name)


def low_of(study: Study) -> tuple[Fraction, Fraction]:
    """Return the lower end of the small study's interval and its error."""
    known = decide(study, "mean(gap) > 0", more='estimate = "gap"\ninterval = "gap_95"').interval
    assert isinstance(known, Interval)
    assert known.errors is not None
    return known.low, known.errors[0]


@pytest.mark.parametrize(
    ("low", "high", "threshold", "ends"),
    [
        ("0.002", "0.1", None, ["lower"]),
        ("-0.002", "0.1", None, ["lower"]),
        ("-0.1", "-0.0029", None, ["upper"]),
        ("0.0031", "0.1", None, []),
        ("0.01", "0.032", "0.03", ["upper"]),
        ("0.032", "0.1", "0.03", ["lower"]),
        ("0.034", "0.1", "0.03", []),
    ],
)
def test_an_end_within_three_errors_of_zero_or_the_threshold_is_close(low, high, threshold, ends) -> None:
    close = close_evidence(interval(low, high), Fraction(threshold) if threshold else None)
    assert [text.split()[1] for text in close] == ends


@pytest.mark.parametrize("of", [None, Missing(not_run=True, reasons=("x",)), interval("0.0001", "1", None)])
def test_without_errors_nothing_is_close(of: Interval | Missing | None) -> None:
    assert close_evidence(of, None) == ()


@pytest.mark.parametrize(("errors", "close"), [("-2", True), ("2", True), ("-4", False), ("4", False)])
def test_a_test_of_an_end_is_close_within_three_errors(study: Study, errors: str, close: bool) -> None:
    low, error = low_of(study)
    threshold = low + Fraction(errors) * error
    decision = decide(study, f"lower(gap_95) > {float(threshold):.12f}")
    assert bool(decision.close_calls) == close
    assert all(call.startswith("c0 could turn with the lower end of gap_95") for call in decision.close_calls)


def test_what_is_lost_anyway_is_no_close_call_and_one_is_printed_with_what_rests_on_it(study: Study) -> None:
    close = f"lower(gap_95) > {float(low_of(study)[0]):.12f}"
    assert decide(study, f"all(mean(gap) > 1, {close})").close_calls == ()
    (call,) = decide(study, "passes(G)", others=rule("G", close)).close_calls
    assert call.startswith("G: c0 could turn")
    decision = decide(study, close)
    assert decision.as_dict()["close_calls"] == list(decision.close_calls)
    assert decide(study, "mean(gap) > 0").as_dict().get("close_calls") is None
