"""`toolkit study`: playing a registration's runs from the command line."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Result, Toolkit, snapshot
from tests.described import SOURCE
from tests.small_home import small_home
from tests.unit.study import fake_play
from toolkit.files import hold
from toolkit.places import Home
from toolkit.registers.study import open_study
from toolkit.study.play.workplace import Workplace

RUN = "c4-paired-none-s0"
BOTH = ("--run", RUN, "--run", "c4-independent-none-s0")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return small_home(tmp_path, monkeypatch)


def run(toolkit: Toolkit, *arguments: object) -> Result:
    return toolkit("study", "run", "small", "--processes", 1, *arguments)


def test_a_run_is_played_and_reported(toolkit: Toolkit, small: Home) -> None:
    document = run(toolkit, "--run", RUN, "--json").json()
    assert document["completed"] == [RUN]
    assert document["registers"] is None
    assert (small.root / "runs" / "small" / RUN / "COMPLETE.json").is_file()


def test_the_registers_of_chosen_runs_go_where_they_are_asked(toolkit: Toolkit, small: Home) -> None:
    result = run(toolkit, *BOTH, "--into", small.root / "elsewhere")
    assert result.code == 0, result.err
    verified = toolkit("registers", "verify", "--study", small.root / "elsewhere" / "small")
    assert verified.code == 0, verified.err


def test_the_card_tells_what_was_run_and_decided(toolkit: Toolkit, small: Home) -> None:
    (small.cards / "small.md").write_text(SOURCE + "\n{{matrix}}\n\n{{outcomes}}\n", encoding="utf-8")
    result = run(toolkit, *BOTH, "--into", small.root / "elsewhere")
    assert result.code == 0, result.err
    folder = small.root / "elsewhere" / "small"
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "\n2 runs, 2 of them with complete evidence.\n" in card
    rows = {row["rule"]: row for row in open_study(folder).rows("decisions")}
    assert f"| H2a | Learning under tool faults | {rows['H2a']['verdict'].replace('_', ' ')} |" in card
    assert json.loads((folder / "croissant.json").read_text(encoding="utf-8"))["name"] == "Small"
    assert toolkit("registers", "verify", "--study", folder).code == 0


def test_a_complete_run_that_is_named_is_refused(toolkit: Toolkit, small: Home) -> None:
    run(toolkit, "--run", RUN)
    before = snapshot(small.root)
    result = run(toolkit, "--run", RUN)
    assert (result.code, snapshot(small.root)) == (2, before)
    assert "is complete" in result.err


def test_a_complete_run_that_is_named_is_kept_where_that_is_asked(toolkit: Toolkit, small: Home) -> None:
    run(toolkit, "--run", RUN)
    before = snapshot(small.root)
    result = run(toolkit, "--run", RUN, "--keep-complete", "--json")
    assert (result.code, snapshot(small.root)) == (0, before)
    assert result.json()["kept"] == [RUN]


@pytest.mark.usefixtures("small")
def test_a_complete_run_among_others_is_kept(toolkit: Toolkit) -> None:
    run(toolkit, "--run", RUN)
    document = run(toolkit, "--run", "c4-*-none-s0", "--json").json()
    assert document["kept"] == [RUN]
    assert document["completed"] == ["c4-independent-none-s0"]


@pytest.mark.usefixtures("small")
def test_status_counts_runs(toolkit: Toolkit) -> None:
    run(toolkit, "--run", RUN)
    document = toolkit("study", "status", "small", "--json").json()
    states = {entry["run_id"]: entry["state"] for entry in document["runs"]}
    assert document["complete"] == 1
    assert states[RUN] == "complete"
    assert states["c4-paired-none-s1"] == "not begun"
    assert document["at_work"] is False


@pytest.mark.usefixtures("small")
def test_status_reads_as_a_table(toolkit: Toolkit) -> None:
    run(toolkit, "--run", RUN)
    result = toolkit("study", "status", "small")
    assert RUN in result.out
    assert "1 of 30 runs complete" in result.out


@pytest.fixture
def at_work(small: Home) -> Iterator[str]:
    """Hold a run, as a command does that is at work on it."""
    with Workplace(small.root / "runs" / "small").held([fake_play.specification(RUN)]):
        yield RUN


def test_status_says_on_which_run_a_command_is_at_work(toolkit: Toolkit, at_work: str) -> None:
    document = toolkit("study", "status", "small", "--json").json()
    assert document["at_work"] is True
    assert [run["run_id"] for run in document["runs"] if run["at_work"]] == [at_work]
    assert "a command is at work on 1" in toolkit("study", "status", "small").out


def test_two_commands_on_one_run_are_refused(toolkit: Toolkit, at_work: str) -> None:
    run(toolkit, "--run", at_work).refused(2, f"another command is at work on the run {at_work}")


def test_a_command_on_all_runs_waits_for_one_on_a_single_run(
    toolkit: Toolkit, at_work: str, small: Home
) -> None:
    result = run(toolkit, "--into", small.root / "out")
    assert (result.code, snapshot(small.root / "out")) == (2, {})


@pytest.mark.usefixtures("at_work")
def test_a_command_on_another_run_of_the_folder_works_beside_it(toolkit: Toolkit) -> None:
    assert run(toolkit, "--run", BOTH[3], "--json").json()["completed"] == [BOTH[3]]


def test_two_commands_that_write_the_same_registers_are_refused(toolkit: Toolkit, small: Home) -> None:
    into = small.root / "out"
    into.mkdir()
    with hold(into, ".small.lock", "study's registers"):
        result = run(toolkit, "--run", RUN, "--into", into)
    assert result.code == 2
    assert "at work on the study's registers" in result.err
    assert (small.root / "runs" / "small" / RUN / "COMPLETE.json").is_file()


def registered(toolkit: Toolkit, home: Home) -> None:
    result = run(toolkit, *BOTH, "--into", home.registers)
    assert result.code == 0, result.err


def test_a_check_of_a_part_compares_it(toolkit: Toolkit, small: Home) -> None:
    registered(toolkit, small)
    document = run(toolkit, *BOTH, "--check", "--json").json()
    assert document["verdict"] == "verified"
    assert "checkpoints" in document["tables"]


def test_a_check_names_what_differs(toolkit: Toolkit, small: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    registered(toolkit, small)
    monkeypatch.setattr("toolkit.study.play.segments.play_segment", fake_play.otherwise)
    run(toolkit, *BOTH, "--check").refused(1, "in groups, run c4-independent-none-s0")


def test_a_check_leaves_nothing_behind(toolkit: Toolkit, small: Home) -> None:
    registered(toolkit, small)
    before = snapshot(small.root)
    run(toolkit, "--run", RUN, "--check")
    assert snapshot(small.root) == before


@pytest.mark.usefixtures("small")
def test_a_check_of_what_is_not_registered_is_wrong_usage(toolkit: Toolkit) -> None:
    assert run(toolkit, "--check").code == 2


@pytest.mark.usefixtures("small")
def test_evidence_that_lacks_something_is_told(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.study.play.segments.play_segment", fake_play.sparsely)
    run(toolkit, "--run", RUN).refused(3, "does not count")


def test_evidence_that_lacks_something_is_registered_where_that_is_asked(
    toolkit: Toolkit, small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.study.play.segments.play_segment", fake_play.sparsely)
    into = small.root / "elsewhere"
    document = run(toolkit, "--run", RUN, "--into", into, "--with-incomplete", "--json").json()
    assert RUN in document["incomplete"]
    rows = toolkit("sql", "SELECT status FROM runs", "--study", into / "small", "--json")
    assert "INCOMPLETE" in rows.out


def test_a_register_that_lacks_a_pool_is_told(
    toolkit: Toolkit, small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CHECKOUT / "registers" / "task-pools", small.registers / "task-pools")
    monkeypatch.setattr("toolkit.api.STUDY_POOLS", ("diagnostic", "another"))
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
        ("--tier", 4),
        ("--rule", "H99"),
        ("--run", "x*"),
        ("--check", "--into", "x"),
        ("--processes", 0),
        ("--executor", "elsewhere"),
        ("--address", "127.0.0.1:6379"),
    ],
    ids=str,
)
def test_wrong_usage_is_told(toolkit: Toolkit, arguments: tuple[object, ...]) -> None:
    assert run(toolkit, *arguments).code == 2
