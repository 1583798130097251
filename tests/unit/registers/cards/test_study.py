"""What a card tells of a study follows from its rows."""

from tests.described import shipped
from toolkit.registers.cards.dataset import matrix_text, outcomes_text, registered_text
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.study import Study


def test_the_registration_and_its_amendments_are_named() -> None:
    text = registered_text(RegistrationRef("small", "a" * 64, {"A1": "b" * 64}))
    assert text.splitlines()[2:] == [
        f"| registration `small` | `{'a' * 64}` |",
        f"| amendment `A1` | `{'b' * 64}` |",
    ]


def test_the_matrix_counts_each_run_once(published: Study) -> None:
    assert matrix_text(published.rows("runs")).splitlines()[2:] == [
        "| C0 | 0 | 0 | group | 2 clean |",
        "| C2 | 0.25 | 0 | group | 3 independent, 3 paired |",
        "| C4 | 0 | 0.1 | group | 3 independent, 4 paired |",
        "",
        "15 runs, 15 of them with complete evidence.",
    ]


def test_a_run_without_complete_evidence_is_not_counted_as_complete(published: Study) -> None:
    first, *others = published.rows("runs")
    text = matrix_text([{**first, "status": "INCOMPLETE"}, *others])
    assert text.endswith("15 runs, 14 of them with complete evidence.")


def test_an_outcome_shows_verdict_evidence_and_interval() -> None:
    rows = {row["rule"]: row for row in shipped("embedded").rows("decisions")}
    text = outcomes_text([rows["H2a"] | {"title": "Learning"}, rows["H1a"]])
    assert text.splitlines()[2:] == [
        "| H2a | Learning | miss | includes zero | -0.0073 | 95% [-0.0365, 0.0214] |",
        "| H1a | hypothesis | pass | not estimated |  |  |",
    ]
