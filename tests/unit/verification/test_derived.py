"""Summaries beside the rows that they follow from: what differs, is missing or is not as registered."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.lab.study.changed import Changed
from tests.unit.lab.study.small_study import Specified, small_runs, small_study
from toolkit.errors import DamagedError
from toolkit.registers.episode_counts import COUNTED, CountedRun
from toolkit.registers.study import Study
from toolkit.specification import Specification
from toolkit.structs import replace
from toolkit.verification import registered
from toolkit.verification.registered import DerivedRegisters
from toolkit.verification.summaries import SUMMARIES, count_episodes

RUN, OTHER = "c2-paired-s0", "c2-independent-s0"


@pytest.fixture(scope="module")
def runs() -> tuple[Specification, ...]:
    return small_runs()


@pytest.fixture(scope="module")
def study(runs: tuple[Specification, ...], tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small_study(tmp_path_factory.mktemp("derived"), runs)


@pytest.fixture
def registers(
    runs: tuple[Specification, ...], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., DerivedRegisters]:
    """Return what makes registers of a study, which these runs or others are registered for."""

    def of(study: Any, *mine: Specification) -> DerivedRegisters:
        monkeypatch.setattr(registered, "runs_of", lambda *_: Specified(mine or runs))
        return DerivedRegisters(study, None, None)

    return of


def edited(study: Study, table: str, run: str, **values: Any) -> Any:
    """Return a study in which the first row of a run in a table says something else."""
    rows = [dict(row) for row in study.rows(table)]
    next(row for row in rows if row["run_id"] == run).update(values)
    return Changed(study, {table: rows})


def test_the_summaries_of_an_assembled_study_follow_from_its_rows(study: Study, registers: Any) -> None:
    for table in SUMMARIES:
        registers(study).derive(table, (RUN, OTHER))


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("runs", {"episodes": 1}),
    ("runs", {"training_groups": 1}),
    ("runs", {"training_rollouts": 1}),
    ("runs", {"status": "INCOMPLETE"}),
    ("runs", {"arm": "unpaired"}),
    ("evaluations", {"successes": 1}),
    ("evaluations", {"calls": 1}),
    ("evaluations", {"seed": 7}),
    ("groups_summary", {"zero_variance": 99}),
    ("groups_summary", {"mean_max_abs_advantage": 0.25}),
    ("luck_share_summary", {"luck_share": 0.25}),
    ("luck_share_summary", {"interval_low": None}),
    ("luck_share_summary", {"policy": "another"}),
]


@pytest.mark.parametrize(("table", "values"), CHANGES, ids=str)
def test_a_value_that_does_not_follow_is_named(study, registers, table, values) -> None:
    (column,) = values
    with pytest.raises(DamagedError, match=rf"{table}\.{column} is not what follows") as caught:
        registers(edited(study, table, RUN, **values)).derive(table, [RUN])
    assert f"run_id={RUN}" in str(caught.value.where)


@pytest.mark.parametrize("table", ["evaluations", "groups_summary", "luck_share_summary"])
def test_rows_of_runs_that_are_not_wanted_are_left_alone(study: Study, registers: Any, table: str) -> None:
    registers(edited(study, table, OTHER, seed=9)).derive(table, [RUN])


def test_every_run_has_to_stand_in_its_place_before_one_is_left_out(study: Study, registers: Any) -> None:
    with pytest.raises(DamagedError, match=r"runs\.arm is not what follows") as caught:
        registers(edited(study, "runs", OTHER, arm="unpaired")).derive("runs", [RUN])
    assert f"run_id={OTHER}" in str(caught.value.where)


def test_a_run_of_no_matrix_is_damage(study: Study, registers: Any, runs: Any) -> None:
    with pytest.raises(DamagedError, match="no run of the registered matrix"):
        registers(study, runs[1]).derive("runs", [RUN])


@pytest.mark.parametrize(
    ("table", "source"),
    [("evaluations", "episodes"), ("groups_summary", "groups"), ("luck_share_summary", "luck_share")],
)
def test_a_summary_without_the_rows_behind_it_is_damage(study, registers, table, source) -> None:
    with pytest.raises(DamagedError, match="has no rows that it could follow from") as caught:
        registers(Changed(study, {source: None})).derive(table, [RUN])
    assert caught.value.expected == source


def test_a_run_with_another_root_did_not_draw_these_groups(study: Study, registers: Any, runs: Any) -> None:
    others = [replace(run, root="other") for run in runs]
    with pytest.raises(DamagedError, match="groups"):
        registers(study, *others).derive("runs", [RUN])


class WithoutEpisode(Changed):
    """A study in which a run has one episode less."""

    def counted(self, run: str) -> CountedRun | None:
        names = self.study.table("episodes").column_names
        wanted = [name for name in names if name in {"run_id", *COUNTED}]
        rows = self.study.run_columns("episodes", run, wanted)
        return count_episodes(run, rows.slice(1) if run == RUN else rows)


def test_a_run_that_lacks_an_episode_is_not_complete(study: Study, registers: Any) -> None:
    rows = [dict(row) for row in study.rows("runs")]
    for row in rows:
        row["episodes"] -= row["run_id"] == RUN
    lacking: Any = WithoutEpisode(study, {"runs": rows})
    with pytest.raises(DamagedError, match=r"runs\.status is not what follows") as caught:
        registers(lacking).derive("runs", [RUN])
    assert (caught.value.expected, caught.value.found) == ("INCOMPLETE", "COMPLETE")


def test_a_run_of_two_versions_is_not_complete(study: Study, registers: Any) -> None:
    launches = study.rows("launches")
    again = [row | {"attempt": 2, "code_version": "9.9.9"} for row in launches if row["run_id"] == RUN]
    mixed: Any = Changed(study, {"launches": [*launches, *again]})
    with pytest.raises(DamagedError, match=r"runs\.status is not what follows"):
        registers(mixed).derive("runs", [RUN])


def test_where_no_registration_specifies_runs_their_episodes_are_counted(study: Study) -> None:
    free = DerivedRegisters(edited(study, "runs", RUN, arm="unpaired"), None, None)
    free.derive("runs", [RUN])
    with pytest.raises(DamagedError, match=r"runs\.episodes is not what follows"):
        DerivedRegisters(edited(study, "runs", RUN, episodes=1), None, None).derive("runs", [RUN])


@pytest.mark.parametrize("dropped", [(), ("episodes", "groups", "luck_share", "probe_gram")])
def test_a_word_that_there_are_figures_only_ends_no_check(study, registers, dropped) -> None:
    tables = {name: entry for name, entry in study.manifest.tables.items() if name not in dropped}
    said = replace(study, manifest=replace(study.manifest, evidence="summary", tables=tables))
    with pytest.raises(DamagedError, match="is said to hold published figures only"):
        registers(said).derive("evaluations", (RUN,))
