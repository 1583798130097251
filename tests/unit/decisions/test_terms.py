"""A registration may declare words of its own; then its rules and its rows speak those, and no others."""

from fractions import Fraction

import pytest

from tests.unit.decisions.study import RULES, rule
from toolkit.decisions.case import rows_query
from toolkit.decisions.measure import measure
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.values import Missing, Series

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
