"""`toolkit study`: playing a registration's runs from the command line."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT, Result, snapshot
from tests.described import SOURCE
from tests.registrations import rehash
from tests.unit.study import fake_play
from toolkit.places import HOME_VARIABLE, Home
from toolkit.registers.study import open_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUN = "c4-paired-none-s0"
BOTH = ("--run", RUN, "--run", "c4-independent-none-s0")
WHERE = {"faults_p025": ("0.25", "0"), "flips_q010": ("0", "0.10"), "clean": ("0", "0")}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home whose registration has regimes, small runs, and a play that is quick."""
    home = tmp_path / "home"
    folder = home / "prereg" / "small"
    (home / "cards").mkdir(parents=True)
    (home / "registers").mkdir()
    shutil.copytree(CHECKOUT / "prereg" / "paired-rollouts", folder)
    rules = (folder / "rules.toml").read_text().replace('name = "paired-rollouts"', 'name = "small"')
    for regime, (faults, flips) in WHERE.items():
        line = f'fixed = {{ fault_rate = "{faults}", flip_rate = "{flips}" }}'
        rules = rules.replace(line, f'{line}\nregime = "{regime}"')
    # BFCL is no environment of this toolkit.
    head, _, tail = rules.rpartition('regime = "faults_p025"\n')
    for old, new in (
        ("steps = 100\n", "steps = 20\n"),
        ("prompts_per_step = 24", "prompts_per_step = 2"),
        ("training_groups = 2400", "training_groups = 40"),
        ("training_rollouts = 19200", "training_rollouts = 320"),
    ):
        head = head.replace(old, new, 1)
    (folder / "rules.toml").write_text(head + tail)
    rehash(folder)
    (folder / "evidence").mkdir()
    for token in ("freetsa.tsr", "digicert.tsr"):
        (folder / "evidence" / token).write_bytes(token.encode())
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    monkeypatch.setattr("toolkit.study.run.play_segment", fake_play.wholly)
    monkeypatch.setattr("toolkit.cli.study.POOLS", ("diagnostic",))
    return Home(home)


def run(toolkit: Callable[..., Result], *arguments: object) -> Result:
    return toolkit("study", "run", "small", "--processes", 1, *arguments)


def test_a_run_is_played_and_reported(toolkit: Callable[..., Result], small: Home) -> None:
    document = run(toolkit, "--run", RUN, "--json").json()
    assert document["completed"] == [RUN]
    assert document["registers"] is None
    assert (small.root / "runs" / "small" / RUN / "COMPLETE.json").is_file()


def test_the_registers_of_chosen_runs_go_where_they_are_asked(
    toolkit: Callable[..., Result], small: Home
) -> None:
    result = run(toolkit, *BOTH, "--into", small.root / "elsewhere")
    assert result.code == 0, result.err
    verified = toolkit("registers", "verify", "--study", small.root / "elsewhere" / "small")
    assert verified.code == 0, verified.err


def test_the_card_tells_what_was_run_and_decided(toolkit: Callable[..., Result], small: Home) -> None:
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


def test_a_complete_run_that_is_named_is_refused(toolkit: Callable[..., Result], small: Home) -> None:
    run(toolkit, "--run", RUN)
    before = snapshot(small.root)
    result = run(toolkit, "--run", RUN)
    assert (result.code, snapshot(small.root)) == (2, before)
    assert "is complete" in result.err


@pytest.mark.usefixtures("small")
def test_a_complete_run_among_others_is_kept(toolkit: Callable[..., Result]) -> None:
    run(toolkit, "--run", RUN)
    document = run(toolkit, "--run", "c4-*-none-s0", "--json").json()
    assert document["kept"] == [RUN]
    assert document["completed"] == ["c4-independent-none-s0"]


@pytest.mark.usefixtures("small")
def test_status_counts_runs(toolkit: Callable[..., Result]) -> None:
    run(toolkit, "--run", RUN)
    document = toolkit("study", "status", "small", "--json").json()
    states = {entry["run_id"]: entry["state"] for entry in document["runs"]}
    assert document["complete"] == 1
    assert states[RUN] == "complete"
    assert states["c4-paired-none-s1"] == "not begun"
    assert document["at_work"] is False


@pytest.mark.usefixtures("small")
def test_status_reads_as_a_table(toolkit: Callable[..., Result]) -> None:
    run(toolkit, "--run", RUN)
    result = toolkit("study", "status", "small")
    assert RUN in result.out
    assert "1 of 30 runs complete" in result.out


def test_status_says_that_a_command_is_at_work(toolkit: Callable[..., Result], small: Home) -> None:
    from toolkit.study.workplace import Workplace

    with Workplace(small.root / "runs" / "small").held():
        assert toolkit("study", "status", "small", "--json").json()["at_work"] is True


def test_two_commands_in_one_folder_are_refused(toolkit: Callable[..., Result], small: Home) -> None:
    from toolkit.study.workplace import Workplace

    with Workplace(small.root / "runs" / "small").held():
        result = run(toolkit, "--run", RUN)
    assert result.code == 2
    assert "another command is at work on this study's folder" in result.err


def registered(toolkit: Callable[..., Result], home: Home) -> None:
    result = run(toolkit, *BOTH, "--into", home.registers)
    assert result.code == 0, result.err


def test_a_check_of_a_part_compares_it(toolkit: Callable[..., Result], small: Home) -> None:
    registered(toolkit, small)
    document = run(toolkit, *BOTH, "--check", "--json").json()
    assert document["verdict"] == "verified"
    assert "checkpoints" in document["tables"]


def test_a_check_names_what_differs(
    toolkit: Callable[..., Result], small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(toolkit, small)
    monkeypatch.setattr("toolkit.study.run.play_segment", fake_play.otherwise)
    result = run(toolkit, *BOTH, "--check")
    assert result.code == 1
    assert "in groups, run c4-independent-none-s0" in result.err


def test_a_check_leaves_nothing_behind(toolkit: Callable[..., Result], small: Home) -> None:
    registered(toolkit, small)
    before = snapshot(small.root)
    run(toolkit, "--run", RUN, "--check")
    assert snapshot(small.root) == before


@pytest.mark.usefixtures("small")
def test_a_check_of_what_is_not_registered_is_wrong_usage(toolkit: Callable[..., Result]) -> None:
    assert run(toolkit, "--check").code == 2


@pytest.mark.usefixtures("small")
def test_evidence_that_lacks_something_is_told(
    toolkit: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.study.run.play_segment", fake_play.sparsely)
    result = run(toolkit, "--run", RUN)
    assert result.code == 3
    assert "does not count" in result.err


def test_evidence_that_lacks_something_is_registered_where_that_is_asked(
    toolkit: Callable[..., Result], small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.study.run.play_segment", fake_play.sparsely)
    into = small.root / "elsewhere"
    document = run(toolkit, "--run", RUN, "--into", into, "--with-incomplete", "--json").json()
    assert RUN in document["incomplete"]
    rows = toolkit("sql", "SELECT status FROM runs", "--study", into / "small", "--json")
    assert "INCOMPLETE" in rows.out


def test_a_register_that_lacks_a_pool_is_told(
    toolkit: Callable[..., Result], small: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CHECKOUT / "registers" / "task-pools", small.registers / "task-pools")
    monkeypatch.setattr("toolkit.cli.study.POOLS", ("diagnostic", "another"))
    result = run(toolkit, "--run", RUN)
    assert result.code == 3
    assert "lacks another" in result.err


@pytest.mark.usefixtures("small")
def test_registers_take_the_place_of_those_of_more_runs(
    toolkit: Callable[..., Result], tmp_path: Path
) -> None:
    assert run(toolkit, *BOTH, "--into", tmp_path / "out").code == 0
    assert run(toolkit, "--run", f"{RUN}*", "--into", tmp_path / "out").code == 0
    files = {path.stem for path in (tmp_path / "out" / "small" / "groups").iterdir()}
    assert files == {RUN}


def test_a_matrix_without_regimes_is_incomplete(toolkit: Callable[..., Result]) -> None:
    result = toolkit("study", "status", "paired-rollouts")
    assert result.code == 3
    assert "regime" in result.err


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--tier", 4),
        ("--rule", "H99"),
        ("--run", "x*"),
        ("--check", "--into", "x"),
        ("--processes", 0),
    ],
    ids=str,
)
def test_wrong_usage_is_told(toolkit: Callable[..., Result], arguments: tuple[object, ...]) -> None:
    assert run(toolkit, *arguments).code == 2
