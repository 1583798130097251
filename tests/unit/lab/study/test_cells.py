"""Runs of other sizes and settings than the registered study's, from playing them to auditing their rows."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.unit.lab.study.changed import Changed
from tests.unit.lab.study.fake_play import specification, whole
from tests.unit.lab.study.small_study import Specified, small_study
from toolkit.errors import DamagedError, UsageError, VerificationError
from toolkit.lab.episodes.brief import read_prompt
from toolkit.lab.evidence import check_tied
from toolkit.lab.play.conclusion import shortcomings
from toolkit.lab.play.rows import rows_of_run
from toolkit.lab.play.segments import play_segment
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.training.rows import MOST_DRAWS
from toolkit.lab.verification.replay import Replayer, audit, check_playable, is_playable
from toolkit.registers.arrow import Row, to_arrow
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study, verify_study
from toolkit.specification import Specification
from toolkit.structs import replace
from toolkit.verification import registered
from toolkit.verification.registered import DerivedRegisters
from toolkit.verification.summaries import SUMMARIES, count_episodes

CELLS: dict[str, dict[str, Any]] = {
    "b1-g4-v0": {"prompts_per_step": 1, "group_size": 4, "surface_tokens": 0},
    "b3-g16-v2": {"prompts_per_step": 3, "group_size": 16, "surface_tokens": 2, "regime": "flips_q010"},
    "b24": {"prompts_per_step": 24, "steps": 1, "checkpoint_every": 1, "scale_rewards": "none"},
    "gradient": {"optimizer": "gradient", "loss_type": "dr_grpo", "learning_rate": "20", "diagnosed": (0, 1)},
    "sign": {"optimizer": "sign", "learning_rate": "0.003", "sampling": "shared"},
    "resampled": {"constant_groups": "resampled"},
    "alone": {"registers": "evaluations", "sampling": "shared"},
    "one-request": {"sub_requests": 1, "sampling": "shared"},
    "unkept": {"registers": "no_checkpoints", "constant_groups": "resampled", "sampling": "shared"},
}


def run_of(cell: str, arm: str = "paired") -> Specification:
    """Return a short run of a cell."""
    changes = {"battery": "curve", "diagnosed": (), "pools": {}} | CELLS[cell]
    return specification(f"{cell}-{arm}-s0", condition=cell, arm=arm, **changes)


RUNS = (*map(run_of, CELLS), run_of("b1-g4-v0", "independent"))
UNKEPT = run_of("unkept")
pytestmark = pytest.mark.usefixtures("few")


@pytest.fixture(scope="module")
def study(few: int, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small_study(tmp_path_factory.mktemp("cells"), RUNS, play_segment)


@pytest.fixture
def registers(study: Study, monkeypatch: pytest.MonkeyPatch) -> Callable[..., DerivedRegisters]:
    monkeypatch.setattr(registered, "runs_of", lambda *_: Specified(RUNS))
    return lambda changed=study: DerivedRegisters(changed, None, None)


class Edited(Changed):
    """A study in which one run has other rows of a table."""

    def run_columns(self, table: str, run: str, names: Sequence[str]) -> Any:
        rows = self.tables.get(table) or ()
        if run not in {row["run_id"] for row in rows}:
            return self.study.run_columns(table, run, names)
        return to_arrow(TABLES[table], list(rows)).select(list(names))

    def rows(self, table: str) -> list[Row]:
        return self.study.rows(table)


def edited(study: Study, table: str, rows: list[Row]) -> Any:
    return Edited(study, {table: rows})


def nothing(*_: object) -> None:
    pass


def test_every_cell_is_complete_and_its_rows_say_so(study: Study, registers: Any) -> None:
    verify_study(study)
    check_tied(study, {run.run_id: run for run in RUNS})
    for table in SUMMARIES:
        if study.has(table):
            registers().derive(table, [run.run_id for run in RUNS])
    assert {row["status"] for row in study.rows("runs")} == {"COMPLETE"}
    assert {row["step"] for row in study.rows("luck_share")} == {0, 1}, "between checkpoints too"


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.run_id)
def test_rows_of_every_cell_come_out_again(study: Study, run: Specification) -> None:
    replayer = Replayer(study, run.run_id)
    kept = {"groups": run.keeps_groups, "episodes": True, "checkpoints": run.keeps_checkpoints}
    for table in (table for table, is_kept in kept.items() if is_kept):
        for row in replayer.rows(table)[:: 29 if table == "episodes" else 3]:
            replayer.check(table, row)
    if not run.keeps_groups:
        return
    last = replayer.rows("groups")[-1]
    assert replayer.rollout(last["step"], last["position"], run.group_size - 1).trace is not None
    with pytest.raises(UsageError):
        replayer.rollout(last["step"], last["position"] + 1, 0)


@pytest.fixture(scope="module")
def unkept(few: int, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small_study(tmp_path_factory.mktemp("unkept"), [UNKEPT], play_segment)


def test_a_study_without_checkpoints_is_audited_from_the_start_of_its_runs(unkept: Study) -> None:
    assert not unkept.has("checkpoints")
    check_playable(unkept)
    assert sum(audit(unkept, 6, 1, {UNKEPT.run_id: UNKEPT}, nothing).sampled.values()) == 6
    with pytest.raises(UsageError, match="no run"):
        Replayer(unkept, "nobody")
    with pytest.raises(UsageError, match="no checkpoint at that step"):
        Replayer(unkept, UNKEPT.run_id).episode({**unkept.rows("episodes")[0], "step": 3})


@pytest.mark.parametrize(
    ("table", "column"), [("episodes", "calls"), ("groups", "decisions"), ("groups", "exposed")]
)
def test_what_was_changed_without_checkpoints_is_noticed(unkept: Study, table: str, column: str) -> None:
    rows = Replayer(unkept, UNKEPT.run_id).rows(table)
    rows[-1][column] += 1
    replayer = Replayer(edited(unkept, table, rows), UNKEPT.run_id)
    with pytest.raises(VerificationError, match="came out otherwise") as caught:
        replayer.check("episodes", replayer.rows("episodes")[-1])
    assert caught.value.where == column


def test_a_run_says_that_its_checkpoints_are_not_kept_and_only_then_is_played_without(unkept: Study) -> None:
    kept = [
        {**row, "specification": row["specification"].replace("no_checkpoints", "all")}
        for row in unkept.rows("runs")
    ]
    assert is_playable(unkept)
    assert not is_playable(Changed(unkept, {"runs": kept}))  # type: ignore[arg-type]


def test_a_run_on_tasks_of_one_request_meets_no_others(study: Study, few: int) -> None:
    for table, pool, number in (("groups", "train", 8), ("episodes", "validation", 3 * few * 2)):
        rows = rows_of_run(study, table, "one-request-paired-s0")
        assert len(rows) == number
        assert {len(read_prompt(load_task(f"{pool}:{row['task']}").prompt).errands) for row in rows} == {1}


def test_a_segment_depends_on_the_checkpoint_before_it_alone(drawn: dict[str, list[Row]]) -> None:
    run, checkpoints = run_of("resampled"), drawn["checkpoints"]
    again = play_segment(run, 4, checkpoints[1])
    assert again["checkpoints"] == checkpoints[2:] != checkpoints[1:2]
    assert again["groups"] == [row for row in drawn["groups"] if row["step"] > 2]
    with pytest.raises(DamagedError, match="another run"):
        play_segment(run, 4, {**checkpoints[1], "run_id": "c2-independent-s0"})


def lacking(run: Specification, rows: dict[str, list[Row]]) -> str:
    tables = {name: to_arrow(TABLES[name], part) for name, part in rows.items() if part}
    return " ".join(shortcomings(run, count_episodes(run.run_id, tables.pop("episodes")), tables))


@pytest.fixture(scope="module")
def drawn(few: int) -> dict[str, list[Row]]:
    return whole(run_of("resampled"), play_segment)


Change = Callable[[list[Row]], list[Row]]


def reversed_rewards(row: Row) -> Row:
    """Return a group with other outcomes: varied where it was constant, and constant where it was not."""
    rewards = [True] * 7 + [not row["zero_variance"]]
    return {**row, "observed_rewards": rewards, "true_successes": rewards}


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:-1],
        lambda rows: rows[1:],
        lambda rows: [*rows, {**rows[-1], "position": rows[-1]["position"] + 1}],
        lambda rows: [*rows, {**rows[-1], "step": rows[-1]["step"] + 1, "position": 0}],
        lambda rows: [*rows, {**reversed_rewards(rows[-1]), "position": rows[-1]["position"] + 1}],
        lambda rows: [*rows[:-1], reversed_rewards(rows[-1])],
        lambda rows: [reversed_rewards(rows[0]), *rows[1:]],
        lambda rows: [row for row in rows if row["step"] != 2],
        lambda rows: [row for row in rows if not row["zero_variance"]],
        lambda _: [],
    ],
)
def test_groups_are_drawn_as_their_outcomes_ask_for(drawn: dict[str, list[Row]], change: Change) -> None:
    run = run_of("resampled")
    assert lacking(run, drawn) == ""
    assert "groups" in lacking(run, drawn | {"groups": change(drawn["groups"])})


def test_a_step_draws_no_more_than_it_may_and_then_is_whole(drawn: dict[str, list[Row]]) -> None:
    """The most groups that there may be, without a varied one, or the last two varied."""
    run = run_of("resampled")
    head = [row for row in drawn["groups"] if row["step"] < run.steps]
    constant, varied = (
        {**drawn["groups"][-1], "observed_rewards": [first] + [True] * 7} for first in (True, False)
    )
    most = run.prompts_per_step * MOST_DRAWS
    for last in ([], [varied] * 2):
        for number, is_whole in ((most, True), (most + 1, False), (most - 1, bool(last))):
            step = [*[constant] * (number - len(last)), *last]
            rows = [*head, *({**row, "position": position} for position, row in enumerate(step))]
            assert (lacking(run, drawn | {"groups": rows}) == "") == is_whole


def test_checkpoints_that_a_run_does_not_keep_are_too_much(drawn: dict[str, list[Row]]) -> None:
    run = replace(run_of("resampled"), registers="no_checkpoints")
    assert lacking(run, drawn) == "there are checkpoints at 0, 2, 4, and the run keeps none"
    assert lacking(run, drawn | {"checkpoints": []}) == ""


def test_all_groups_of_a_resampled_run_s_first_step_are_those_that_its_seeds_draw(study, registers) -> None:
    run = run_of("resampled")
    rows = Replayer(study, run.run_id).rows("groups")
    last = max(at for at, row in enumerate(rows) if row["step"] == 1)
    assert last >= run.prompts_per_step, "the first step drops a group"
    rows[last]["schedule_seeds"] = [1] * 8
    with pytest.raises(DamagedError, match=r"groups\.schedule_seeds is not what follows") as caught:
        registers(edited(study, "groups", rows)).derive("runs", [run.run_id])
    assert f"step=1, position={last}" in str(caught.value.where)
