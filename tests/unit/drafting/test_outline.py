"""A new study begins with what can be read off its table, and says what could not."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import Result
from toolkit.decisions.evaluation import check_not_vacuous
from toolkit.drafting.outline import blank, outlined, scaffold
from toolkit.drafting.power import Components, Power, simulate
from toolkit.drafting.simulation import Design
from toolkit.errors import UsageError
from toolkit.registers.importing.mapping import parse_mapping
from toolkit.registers.importing.source import ROW, Log
from toolkit.registers.importing.tables import tables_of
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.structs import replace
from toolkit.verification.decidable import check_decidable

EPISODES: list[dict[str, Any]] = [
    {
        "Method": method,
        "run seed": seed,
        "global-step": step,
        "Question ID": question,
        "correct": (seed + step + question) % 2,
        "tokens": 17,
        "mood": "calm",
    }
    for method in ("chain of thought", "3-shot", "plain")
    for seed in (0, 7)
    for step in (0, 50)
    for question in range(4)
    for _ in range(3)
]


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows).with_row_index(ROW, offset=1)


def test_a_study_is_read_off_its_table() -> None:
    outline = outlined("mine", Log("tables", frame(EPISODES)))
    assert outline.columns == {
        "arm": "Method",
        "seed": "run seed",
        "step": "global-step",
        "task": "Question ID",
        "tokens": "tokens",
        "true_success": "correct",
    }
    assert outline.arms == ("arm_3_shot", "chain_of_thought", "plain")
    assert outline.values == {"arm": {"3-shot": "arm_3_shot", "chain of thought": "chain_of_thought"}}
    assert (outline.seeds, outline.steps, outline.tasks, outline.schedules) == ((0, 7), (0, 50), 4, 3)
    assert outline.unused == ("mood",)


def test_what_is_written_can_be_read() -> None:
    outline = outlined("mine", Log("tables", frame(EPISODES)))
    files = scaffold(outline, "me/mine")
    book = load_rulebook(files["prereg/mine/rules.toml"])
    assert {name: endpoint.arms for name, endpoint in book.endpoints.items()} == {
        "gap_chain_of_thought": ("chain_of_thought", "arm_3_shot"),
        "gap_plain": ("plain", "arm_3_shot"),
    }
    assert {rule.title for rule in book.rules.values()} == {
        "chain_of_thought above arm_3_shot in success",
        "plain above arm_3_shot in success",
    }
    assert {str(interval.level) for interval in book.intervals.values()} == {"39/40"}, "Bonferroni's"
    tables = tables_of(frame(EPISODES), parse_mapping(files["mappings/mine.toml"]))
    (cell,) = book.plan.cells
    assert {(r["condition"], r["arm"], r["seed"]) for r in tables["runs"].iter_rows(named=True)} == {
        (cell.condition, arm, seed) for arm in cell.arms for seed in cell.seeds
    }
    expected = book.endpoints["gap_plain"].expect
    assert set(tables["evaluations"]["episodes"].to_list()) == {expected["episodes"]}
    assert "me/mine" in files["cards/mine.md"]


def test_a_blank_study_can_be_read_and_says_what_to_fill_in() -> None:
    files = scaffold(blank("mine"), "OWNER/NAME")
    load_rulebook(files["prereg/mine/rules.toml"])
    mapping = parse_mapping(files["mappings/mine.toml"])
    assert set(mapping.columns) == {"arm", "seed", "task", "true_success"}
    assert '"FILL IN' in files["prereg/mine/rules.toml"]
    assert tomllib.loads(files["prereg/mine/rules.toml"])["words"]["arm"] == ["control", "treatment"]


def with_steps(*steps: int) -> RuleBook:
    """Return the rules of a new study of five seeds on 200 tasks."""
    outline = replace(blank("mine"), seeds=(0, 1, 2, 3, 4), steps=steps, tasks=200)
    return load_rulebook(scaffold(outline, "me/mine")["prereg/mine/rules.toml"])


def simulated(book: RuleBook, effect: float, seed_sd: float) -> Power:
    """Simulate a new study whose tasks differ in difficulty as those of a benchmark do."""
    components = Components({"gap": (0.5,) * len(book.endpoints["gap"].steps)}, (), 0.0, seed_sd)
    design = Design(effect, seed_sd, 0.25, len(book.endpoints["gap"].seeds), None, 1000, 3)
    return simulate(book, "H1", components, design)


def test_evaluated_policies_are_compared_over_tasks_and_the_effect_is_found() -> None:
    """Two arms, five seeds, 200 tasks: six points are found in four studies of five, at the level said."""
    book = with_steps(0)
    assert book.intervals["gap_95"].method == "t over tasks"
    found = simulated(book, 0.06, 0.0)
    assert found.pass_probability >= 0.8
    assert found.level_missed == 0


def test_training_runs_are_compared_over_seeds_at_the_level_said() -> None:
    """Where the runs of an arm differ, an interval over tasks says more than it knows."""
    book = with_steps(0, 50)
    assert book.intervals["gap_95"].method == "t over seeds"
    assert simulated(book, 0.06, 0.03).level_missed == 0
    over_tasks = replace(book.intervals["gap_95"], method="t over tasks")
    assert simulated(replace(book, intervals={"gap_95": over_tasks}), 0.06, 0.03).level_missed < 0


@pytest.mark.parametrize(
    ("design", "why"),
    [
        ({"seeds": (0,), "steps": (0, 50)}, "one seed"),
        ({"seeds": (0, 1)}, "No training"),
        ({"seeds": (0, 1), "tasks": 1, "schedules": 50}, "one task"),
        ({"seeds": (0, 1), "steps": (0, 50)}, "training run of its own"),
    ],
)
def test_the_rules_say_why_the_interval_is_made_so(design: dict[str, Any], why: str) -> None:
    text = scaffold(replace(blank("mine"), **design), "me/mine")["prereg/mine/rules.toml"]
    check_decidable(load_rulebook(text))
    check_not_vacuous(load_rulebook(text))
    before = text.partition("[intervals.gap_95]")[0].splitlines()
    assert why in before[-2]
    assert before[-2].startswith("# ")


DEFECTS: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "no_arm": (lambda row: {k: v for k, v in row.items() if k != "Method"}, "says it is the arm"),
    "one_arm": (lambda row: {**row, "Method": "plain"}, "does not hold the arms"),
    "arms_alike": (
        lambda row: {**row, "Method": "a b" if row["run seed"] else "a-b"},
        "does not hold the arms",
    ),
    "negative_seeds": (lambda row: {**row, "run seed": -1}, "does not hold the seeds"),
    "seeds_in_words": (lambda row: {**row, "run seed": "seven"}, "does not hold the seeds"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_table_that_cannot_be_a_studys_is_refused(defect: str) -> None:
    change, problem = DEFECTS[defect]
    with pytest.raises(UsageError, match=problem):
        outlined("mine", Log("tables", frame([change(row) for row in EPISODES])))


def test_a_log_without_any_outcome_is_refused() -> None:
    table = frame(EPISODES).with_columns(correct=pl.lit(None, pl.Boolean))
    with pytest.raises(UsageError, match="no episode of the log has an outcome"):
        outlined("mine", Log("tables", table))


def test_the_command_overwrites_nothing(toolkit: Callable[..., Result], tmp_path: Path) -> None:
    begun = toolkit("new-study", "mine", "--into", tmp_path, "--json").json()
    assert begun["files"] == [
        "cards/mine.md",
        "mappings/mine.toml",
        "prereg/mine/protocol.md",
        "prereg/mine/rules.toml",
        "registers/.gitkeep",
    ]
    (tmp_path / "prereg/mine/rules.toml").write_text("mine")
    again = toolkit("new-study", "mine", "--into", tmp_path)
    assert (again.code, (tmp_path / "prereg/mine/rules.toml").read_text()) == (3, "mine")
    assert "nothing is overwritten" in again.err
    assert toolkit("new-study", "other", "--into", tmp_path).code == 0


def test_a_name_that_leaves_the_folder_is_refused(toolkit: Callable[..., Result], tmp_path: Path) -> None:
    refused = toolkit("new-study", "../mine", "--into", tmp_path)
    assert refused.code == 2
    assert not list(tmp_path.iterdir())
