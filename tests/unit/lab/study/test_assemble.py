"""From complete runs to registers: every table, exact counts, and what a run's evidence lacks."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.described import SOURCE
from tests.unit.lab.study.fake_play import otherwise, sparsely, specification, whole, wholly
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.lab.play.assemble import Assembly, assemble, schedules, seal
from toolkit.lab.play.conclusion import shortcomings
from toolkit.lab.play.runner import play_runs
from toolkit.lab.play.segments import Segment
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.task_pools import summarize
from toolkit.lab.verification.comparison import compare
from toolkit.registers.arrow import to_arrow
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study, open_study, verify_study
from toolkit.specification import Specification
from toolkit.structs import replace
from toolkit.verification.summaries import count_episodes

POOLS = {"diagnostic": summarize("diagnostic").sha256}
RUNS = tuple(
    specification(f"c2-{arm}-s{seed}", arm=arm, seed=seed, pools=POOLS)
    for arm in ("paired", "independent")
    for seed in (0, 1)
)
REGISTRATION = RegistrationRef("small", "f" * 64, {})


def played(folder: Path, runs: tuple[Specification, ...] = RUNS, play: Any = wholly) -> Workplace:
    workplace = Workplace(folder)
    with workplace.held(runs):
        play_runs(workplace, runs, play=play)
    return workplace


def assembled(workplace: Workplace, runs: tuple[Specification, ...] = RUNS) -> Assembly:
    return assemble(workplace, runs, lambda _: None)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return played(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def study(workplace: Workplace, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("registers") / "small"
    seal(folder, "small", REGISTRATION, assembled(workplace), SOURCE)
    return open_study(folder)


def test_the_registers_verify_and_hold_every_table(study: Study) -> None:
    assert verify_study(study)["runs"] == 4
    names = "checkpoints episodes evaluations groups groups_summary launches luck_share luck_share_summary"
    assert sorted(study.manifest.tables) == [*names.split(), "runs", "schedules", "task_pools"]
    files = study.manifest.tables["episodes"].files
    assert files == tuple(f"episodes/{run}.parquet" for run in sorted(run.run_id for run in RUNS))
    assert study.manifest.tables["schedules"].rows == 64 * 2 + 200 * 4 + 16 * 8


def test_the_episodes_of_a_run_are_those_of_training_evaluation_and_diagnostics(study: Study) -> None:
    run, launch = study.rows("runs")[0], study.rows("launches")[0]
    # 3 checkpoints × (2 × 64 × 2 + 64), the final sets 4 × 800 + 200, and 2 tables of 16 × 8 × 8.
    assert (run["status"], run["training_rollouts"]) == ("COMPLETE", 4 * 2 * 8)
    assert run["episodes"] == 64 + 3 * 320 + 3400 + 2 * 1024
    assert (launch["attempt"], launch["launched_at"] <= launch["ended_at"]) == (1, True)


def test_two_seeds_in_one_place_are_damage() -> None:
    def file(seed: int) -> bytes:
        sink = io.BytesIO()
        columns = {"pool": ["test"], "task": [0], "schedule": [1], "schedule_seed": [seed]}
        pq.write_table(pa.table(columns), sink)
        return sink.getvalue()

    with pytest.raises(DamagedError, match="different schedules"):
        schedules([file(1), file(1), file(2)])


def test_what_is_not_complete_is_not_assembled_and_what_does_not_count_says_why(tmp_path: Path) -> None:
    workplace = played(tmp_path, RUNS[:1], sparsely)
    with pytest.raises(IncompleteError, match="c2-independent-s0 is not complete"):
        assembled(workplace)
    run = workplace.run(RUNS[0])
    (launch,) = run.launches()
    run.record(replace(launch, attempt=2, code_version="9.9.9"))
    first, *_, last = assembled(workplace, RUNS[:1]).shortcomings["c2-paired-s0"]
    assert "has 0 episodes, not its 128" in first
    assert "its attempts have versions" in last


def test_a_pool_that_is_not_the_specified_one_is_named(tmp_path: Path) -> None:
    runs = (specification(pools={"diagnostic": "0" * 64}),)
    workplace = played(tmp_path, runs)
    with pytest.raises(VerificationError, match="pool diagnostic"):
        assembled(workplace, runs)


def test_the_first_table_and_run_that_differ_are_named(study: Study, tmp_path: Path) -> None:
    seal(tmp_path / "small", "small", REGISTRATION, assembled(played(tmp_path / "runs", play=otherwise)))
    with pytest.raises(VerificationError, match="in groups, run c2-independent-s0"):
        compare(study, open_study(tmp_path / "small"))


def test_a_part_of_the_runs_is_compared_with_its_part(study: Study, tmp_path: Path) -> None:
    part = RUNS[:1]
    seal(tmp_path / "small", "small", REGISTRATION, assembled(played(tmp_path / "runs", part), part))
    again = open_study(tmp_path / "small")
    assert "schedules" not in compare(study, again, ["c2-paired-s0"])
    with pytest.raises(VerificationError, match="run c2-independent-s0"):
        compare(study, again)


@pytest.fixture(scope="module")
def evidence() -> Segment:
    rows = whole(RUNS[0], wholly)
    assert lacking(rows) == ()
    return rows


def lacking(rows: Segment) -> tuple[str, ...]:
    tables = {name: to_arrow(TABLES[name], part) for name, part in rows.items()}
    return shortcomings(RUNS[0], count_episodes(RUNS[0].run_id, tables.pop("episodes")), tables)


# Table, what becomes of its rows, and what is said of them.
DEFECTS: list[tuple[str, Callable[[list[Any]], list[Any]], str]] = [
    ("episodes", lambda rows: rows[:5] + rows[6:], "has 127 episodes, not its 128: 1 missing"),
    ("episodes", lambda rows: [*rows[1:], rows[0] | {"task": 64}], "2 missing or unknown"),
    (
        "episodes",
        lambda rows: [*rows[1:], rows[0] | {"regime": "flips_q005"}],
        "an evaluation that is not registered: periodic validation flips_q005 step 0",
    ),
    ("groups", lambda rows: [rows[0] | {"run_id": "c9"}, *rows[1:]], "groups has rows of c9"),
    ("groups", lambda rows: rows[:-1], "the training groups are not the 8"),
    (
        "groups",
        lambda rows: [rows[0] | {"observed_rewards": [True]}, *rows[1:]],
        "1 training groups do not have 8 rollouts",
    ),
    (
        "luck_share",
        lambda rows: [row for row in rows if row["step"]],
        "the luck share was diagnosed at 4, not at 0, 4",
    ),
    ("luck_share", lambda rows: rows[:-1], "the luck-share tables at step 4 have 127 rows"),
    ("checkpoints", lambda rows: rows[:-1], "there are checkpoints at 0, 2 alone"),
]


@pytest.mark.parametrize(("table", "defect", "said"), DEFECTS)
def test_what_evidence_lacks_is_said(evidence, table, defect, said) -> None:
    assert said in " ".join(lacking(evidence | {table: defect(evidence[table])}))


def test_an_episode_twice_is_no_evidence(evidence: Segment) -> None:
    twice = evidence | {"episodes": [*evidence["episodes"], evidence["episodes"][5]]}
    with pytest.raises(DamagedError, match="twice, or out of order"):
        lacking(twice)
