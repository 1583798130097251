"""A study verified whole: what was launched, met and drawn, and what is only published."""

import dataclasses
from typing import Any

import pytest

from tests.unit.lab.study.changed import Changed
from tests.unit.lab.study.small_study import Specified, small_runs, small_study
from toolkit.errors import DamagedError, ToolkitError
from toolkit.registers.published import check_figures
from toolkit.registers.study import Study
from toolkit.specification import Specification
from toolkit.structs import replace
from toolkit.verification import registered, steps

RUN = "c2-paired-s0"


@pytest.fixture(scope="module")
def runs() -> tuple[Specification, ...]:
    return small_runs()


@pytest.fixture(scope="module")
def study(runs: tuple[Specification, ...], tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small_study(tmp_path_factory.mktemp("whole"), runs)


@pytest.fixture(autouse=True)
def as_specified(runs: tuple[Specification, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have these runs be the registered ones; files and schema are verified in tests of their own."""
    for module in (registered, steps):
        monkeypatch.setattr(module, "runs_of", lambda *_: Specified(runs))
    monkeypatch.setattr(steps, "check_files", lambda _: None)
    monkeypatch.setattr(steps, "check_tables", lambda study, _: {"runs": len(study.rows("runs"))})


def check(study: Any) -> dict[str, int]:
    return steps.check_study(steps.Checked(study, None)).rows


def edited(study: Study, table: str, at: int = 0, **values: Any) -> Any:
    rows = [dict(row) for row in study.rows(table)]
    rows[at].update(values)
    return Changed(study, {table: rows})


def test_an_assembled_study_is_sound(study: Study) -> None:
    assert check(study) == {"runs": 2}


@pytest.mark.parametrize(
    ("table", "values", "problem", "where"),
    [
        (
            "launches",
            {"specification_sha256": "0" * 64},
            "launched with another specification",
            "attempt=1",
        ),
        ("task_pools", {"prompt": "Do nothing."}, "a task is not the one of its digest", "index=0"),
        ("schedules", {"schedule_seed": 1}, r"schedules\.schedule_seed is not what follows", "schedule=0"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_was_launched_or_met_is_as_specified(study, table, values, problem, where) -> None:
    with pytest.raises(DamagedError, match=problem) as caught:
        check(edited(study, table, **values))
    assert where in str(caught.value.where)


@pytest.mark.parametrize("table", ["evaluations", "groups_summary", "luck_share_summary"])
def test_a_row_of_no_run_is_damage(study: Study, table: str) -> None:
    rows = study.rows(table)
    stranger = rows[-1] | {"run_id": "nobody"}
    with pytest.raises(DamagedError, match=f"{table} has a row of no run") as caught:
        check(Changed(study, {table: [*rows, stranger]}))
    assert caught.value.found == "nobody"


def test_a_pool_with_a_task_less_is_not_the_one_of_the_runs(study: Study) -> None:
    with pytest.raises(ToolkitError, match="pool diagnostic is not the one"):
        check(Changed(study, {"task_pools": study.rows("task_pools")[:-1]}))


def test_schedules_that_episodes_met_with_other_seeds_are_damage(study, monkeypatch) -> None:
    """Episodes and schedules agree with each other here: only the seed's own derivation tells."""
    forged = edited(study, "schedules", schedule_seed=1)
    monkeypatch.setattr(steps, "schedules_met", lambda _: forged.rows("schedules"))
    with pytest.raises(DamagedError, match="does not have the seed of its task"):
        check(forged)


def test_a_published_figure_that_its_source_does_not_give_is_damage(published: Study) -> None:
    row = published.rows("evaluations")[0]
    check_figures(published, ["runs", "evaluations"])
    with pytest.raises(DamagedError, match=r"evaluations\.successes is not what follows"):
        check_figures(edited(published, "evaluations", successes=row["successes"] - 1), ["evaluations"])
    with pytest.raises(DamagedError, match=r"training_steps\.calls is not what follows"):
        check_figures(edited(published, "training_steps", calls=1), ["training_steps"])


def test_a_study_that_nobody_published_or_played_is_held_against_nothing(study: Study) -> None:
    others = steps.Checked(study, None, replayed=4)
    assert (others.is_published, steps.STEPS["draws"](others)) == (False, "")
    assert steps.STEPS["replay"](others).endswith("nothing is played again")


def test_the_published_study_is_one_of_figures(published: Study, study: Study) -> None:
    """Rows under its name are held against themselves."""
    same_name = dataclasses.replace(study, manifest=replace(study.manifest, study="published"))
    assert steps.Checked(published, None).is_published
    assert not steps.Checked(same_name, None).is_published


@pytest.mark.parametrize("table", ["training_steps", "reference_steps"])
def test_a_published_study_of_an_earlier_schema_says_what_it_lacks(published: Study, table: str) -> None:
    at = steps.Checked(Changed(published, {table: None}), None, replayed=1)
    assert steps.STEPS["draws"](at) == f"it has no table {table}: nothing is held against draws"
    if table == "reference_steps":
        assert steps.STEPS["replay"](at) == f"it has no table {table}: nothing is played again"
