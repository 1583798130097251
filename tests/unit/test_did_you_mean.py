"""Names that nobody knows: what is offered for them, and rules in any case of letters."""

import pytest

from tests.conftest import Toolkit
from toolkit import cases
from toolkit.decisions.case import Case
from toolkit.errors import UsageError, did_you_mean
from toolkit.structs import replace


@pytest.mark.parametrize(
    ("given", "known", "otherwise", "remedy"),
    [
        ("embeded", ["embedded", "map"], None, "did you mean 'embedded'?"),
        ("EMBEDDED", ["embedded", "map"], None, "did you mean 'embedded'?"),
        ("H2", ["H2b", "H2a", "P1"], None, "did you mean 'H2b' or 'H2a'?"),
        ("embeded", ["embedded"], "`list` names them", "did you mean 'embedded'? `list` names them"),
        ("nobody", ["embedded"], "`list` names them", "`list` names them"),
        ("nobody", [], None, None),
        ("x" * 10**6, ["embedded"], None, None),
    ],
)
def test_the_closest_names_are_offered(given, known, otherwise, remedy) -> None:
    assert did_you_mean(given, known, otherwise) == remedy


def test_a_column_that_a_table_lacks_may_be_another(case: Case) -> None:
    with pytest.raises(UsageError) as caught:
        case.study.columns("runs", ["run_idd"])
    assert caught.value.remedy == "did you mean 'run_id'?"
    with pytest.raises(UsageError) as caught:
        case.study.rows("run")
    assert caught.value.remedy == "did you mean 'runs'?"


def test_a_rule_is_known_in_any_case_of_letters(toolkit: Toolkit, case: Case) -> None:
    as_written = toolkit("decide", "H2a", "gate2", "--study", "published", "--json").json()
    assert toolkit("decide", "h2A", "GATE2", "--study", "published", "--json").json() == as_written
    explained = toolkit("explain", "h2a", "--study", "published", "--json").json()
    assert explained == toolkit("explain", "H2a", "--study", "published", "--json").json()
    assert case.decide("h2a") is case.decide("H2a")
    assert cases.rules_asked([case], ["p1", "H2B"], everywhere=True) == [(case, "P1"), (case, "H2b")]


def test_a_rule_that_differs_in_case_alone_is_taken_as_written(case: Case) -> None:
    rules = case.book.rules
    small = replace(rules["H2b"], id="h2a")
    both = replace(case.book, rules={**rules, "h2a": small})
    assert (both.find("H2a"), both.find("h2a"), both.find("H2A")) == (rules["H2a"], small, None)
