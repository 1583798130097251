"""`toolkit study`: playing a registration's runs from the command line."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import CHECKOUT, Result, Toolkit, snapshot
from tests.described import SOURCE
from tests.small_home import small_home
from tests.unit.lab.study import fake_play
from toolkit.files import hold
from toolkit.lab.play.workplace import Workplace
from toolkit.places import Home
from toolkit.registers.study import open_study

RUN, OTHER = "c4-paired-none-s0", "c4-independent-none-s0"
BOTH = ("--run", RUN, "--run", OTHER)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return small_home(tmp_path, monkeypatch)


def run(toolkit: Toolkit, *arguments: object) -> Result:
    return toolkit("study", "run", "small", "--processes", 1, *arguments)


def test_a_run_is_played_counted_refused_by_its_name_and_kept_where_asked(toolkit, small) -> None:
    played = run(toolkit, "--run", RUN, "--json").json()
    assert (played["completed"], played["registers"]) == ([RUN], None)
    assert (small.root / "runs" / "small" / RUN / "COMPLETE.json").is_file()
    before = snapshot(small.root)
    status = toolkit("study", "status", "small", "--json").json()
    states = {entry["run_id"]: entry["state"] for entry in status["runs"]}
    assert (status["complete"], status["at_work"]) == (1, False)
    assert (states[RUN], states["c4-paired-none-s1"]) == ("complete", "not begun")
    shown = toolkit("study", "status", "small").out
    assert (RUN in shown, "1 of 30 runs complete" in shown) == (True, True)
    run(toolkit, "--run", RUN).refused(2, "is complete")
    assert run(toolkit, "--run", RUN, "--keep-complete", "--json").json()["kept"] == [RUN]
    assert snapshot(small.root) == before
    document = run(toolkit, "--run", "c4-*-none-s0", "--json").json()
    assert (document["kept"], document["completed"]) == ([RUN], [OTHER])


def test_the_card_of_chosen_runs_tells_what_was_run_and_decided(toolkit: Toolkit, small: Home) -> None:
    (small.cards / "small.md").write_text(SOURCE + "\n{{matrix}}\n\n{{outcomes}}\n", encoding="utf-8")
    result = run(toolkit, *BOTH, "--into", small.root / "elsewhere")
    assert result.code == 0, result.err
    folder = small.root / "elsewhere" / "small"
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "\n2 runs, 2 of them with complete evidence.\n" in card
    rows = {row["rule"]: row for row in open_study(folder).rows("decisions")}
    assert f"| H2a | Learning under tool faults | {rows['H2a']['verdict'].replace('_', ' ')} |" in card
    assert toolkit("registers", "verify", "--study", folder).code == 0


def test_while_a_command_is_at_work_on_a_run_others_are_played(toolkit: Toolkit, small: Home) -> None:
    with Workplace(small.root / "runs" / "small").held([fake_play.specification(RUN)]):
        document = toolkit("study", "status", "small", "--json").json()
        assert document["at_work"] is True
        assert [entry["run_id"] for entry in document["runs"] if entry["at_work"]] == [RUN]
        assert "a command is at work on 1" in toolkit("study", "status", "small").out
        run(toolkit, "--run", RUN).refused(2, f"another command is at work on the run {RUN}")
        run(toolkit, "--into", small.root / "out").refused(2)
        assert snapshot(small.root / "out") == {}
        assert run(toolkit, "--run", OTHER, "--json").json()["completed"] == [OTHER]


def test_two_commands_that_write_the_same_registers_are_refused(toolkit: Toolkit, small: Home) -> None:
    into = small.root / "out"
    into.mkdir()
    with hold(into, ".small.lock", "study's registers"):
        run(toolkit, "--run", RUN, "--into", into).refused(2, "at work on the study's registers")
    assert (small.root / "runs" / "small" / RUN / "COMPLETE.json").is_file()


def test_a_check_compares_a_part_names_what_differs_and_leaves_nothing_behind(
    toolkit: Toolkit, small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(toolkit, *BOTH, "--into", small.registers).code == 0
    before = snapshot(small.root)
    document = run(toolkit, *BOTH, "--check", "--json").json()
    assert (document["verdict"], "checkpoints" in document["tables"]) == ("verified", True)
    monkeypatch.setattr("toolkit.lab.play.segments.play_segment", fake_play.otherwise)
    run(toolkit, *BOTH, "--check").refused(1, f"in groups, run {OTHER}")
    assert snapshot(small.root) == before


def test_evidence_that_lacks_something_is_registered_only_where_that_is_asked(
    toolkit: Toolkit, small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.lab.play.segments.play_segment", fake_play.sparsely)
    run(toolkit, "--run", RUN).refused(3, "does not count")
    into = small.root / "elsewhere"
    again = ("--keep-complete", "--with-incomplete")
    document = run(toolkit, "--run", RUN, "--into", into, *again, "--json").json()
    assert RUN in document["incomplete"]
    rows = toolkit("sql", "SELECT status FROM runs", "--study", into / "small", "--json")
    assert "INCOMPLETE" in rows.out


def test_a_register_that_lacks_a_pool_is_told(toolkit, small, monkeypatch) -> None:
    shutil.copytree(CHECKOUT / "registers" / "task-pools", small.registers / "task-pools")
    monkeypatch.setattr("toolkit.lab.task_pools.STUDY_POOLS", ("diagnostic", "another"))
    run(toolkit, "--run", RUN).refused(3, "lacks another")


@pytest.mark.usefixtures("small")
def test_registers_take_the_place_of_those_of_more_runs(toolkit: Toolkit, tmp_path: Path) -> None:
    assert run(toolkit, *BOTH, "--into", tmp_path / "out").code == 0
    assert run(toolkit, "--run", f"{RUN}*", "--into", tmp_path / "out").code == 0
    files = {path.stem for path in (tmp_path / "out" / "small" / "groups").iterdir()}
    assert files == {RUN}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "arguments",
    [
        "--tier 4",
        "--rule H99",
        "--run x*",
        "--check",
        "--check --into x",
        "--processes 0",
        "--executor elsewhere",
        "--address 127.0.0.1:6379",
    ],
)
def test_wrong_usage_is_told(toolkit: Toolkit, arguments: str) -> None:
    run(toolkit, *arguments.split()).refused(2)


@pytest.mark.parametrize("name", ["embedded", "published", "tiny-lm"])
def test_a_study_whose_registers_are_here_is_known_to_be_played(toolkit: Toolkit, name: str) -> None:
    runs = pq.read_table(CHECKOUT / "registers" / name / "runs").num_rows
    document = toolkit("study", "status", name, "--json").json()
    assert (document["study"], document["complete"], document["at_work"]) == (name, 0, False)
    assert document["registers"] == {
        "folder": str(CHECKOUT / "registers" / name),
        "runs": runs,
        "complete": runs,
    }
    first, second = toolkit("study", "status", name).out.splitlines()
    assert first.startswith(f"{name}: {runs} of {runs} runs complete in its registers")
    assert second == f"no run of it was played in {document['folder']}"
