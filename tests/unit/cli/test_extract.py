"""`toolkit sql` prints what a reader can use, and writes the rest; `toolkit export` writes all or nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit, snapshot
from toolkit.places import Home


def test_a_long_table_says_how_many_rows_it_does_not_show(toolkit: Toolkit) -> None:
    shown = toolkit("sql", "SELECT 'row ' || range AS x FROM range(150) ORDER BY range").out
    assert "the first 100 of 150 rows" in shown
    assert "row 99" in shown
    assert "row 100" not in shown
    whole = toolkit("sql", "SELECT 'row ' || range AS x FROM range(150)", "--all-rows").out
    assert ("row 149" in whole, "first" in whole) == (True, False)


def test_csv_and_json_are_never_shortened(toolkit: Toolkit) -> None:
    assert toolkit("sql", "SELECT arm, count(*) AS n FROM runs GROUP BY arm ORDER BY arm", "--csv").out == (
        "arm,n\nclean,2\nindependent,6\npaired,7\n"
    )
    assert len(toolkit("sql", "FROM range(250000)", "--csv").out.splitlines()) == 250_001
    assert len(toolkit("sql", "FROM range(150)", "--json").json()) == 150


def test_an_empty_answer_has_its_columns_in_csv(toolkit: Toolkit) -> None:
    assert toolkit("sql", "SELECT 1 AS a, 2 AS b WHERE false", "--csv").out == "a,b\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_parquet_file_is_written_and_named(toolkit: Toolkit, tmp_path: Path, as_json: bool) -> None:
    import pyarrow.parquet as pq

    file = tmp_path / "runs.parquet"
    result = toolkit("sql", "FROM runs", "--parquet", file, *(["--json"] if as_json else []))
    assert pq.read_metadata(file).num_rows == 15
    if as_json:
        assert result.json() == {"file": str(file), "rows": 15}
    else:
        assert result.out == f"15 rows written to {file}\n"
    toolkit("sql", "FROM runs", "--parquet", file).refused(2)
    assert pq.read_metadata(file).num_rows == 15


def test_a_cell_does_nothing_to_a_terminal_but_appear(toolkit: Toolkit) -> None:
    shown = toolkit("sql", "SELECT chr(27) || '[31mpass' AS verdict, 'two' || chr(10) || 'lines' AS more").out
    assert "\x1b" not in shown
    assert "\\x1b[31mpass" in shown
    assert "[red]x[/red]" in toolkit("sql", "SELECT '[red]x[/red]' AS \"[b]name\"").out


def test_a_query_that_does_not_stop_ends_the_command_with_one_message() -> None:
    query = "SELECT count(*) FROM runs WHERE list_sum(range(150000000)) < 0"
    command = [sys.executable, "-m", "toolkit", "sql", query, "--study", "published", "--timeout", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the query takes too long\n")
    assert len(done.stderr.splitlines()) == 3


FORMATS = {"every-eval-ever": ("--run", "gate1-*"), "in-toto": ("--rule", "H2a")}


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_study_gives_the_same_bytes(toolkit: Toolkit, tmp_path: Path, form: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        done = toolkit("export", "published", "--as", form, *FORMATS[form], "--into", folder, "--json")
        assert (done.code, done.err) == (0, "")
    said, written = done.json(), snapshot(second)
    assert said["files"] == {name: len(content) for name, content in written.items()}
    assert said["bytes"] == sum(said["files"].values()) > 0
    assert snapshot(first) == written


def test_nothing_is_overwritten(toolkit: Toolkit, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    arguments = ("export", "published", "--as", "in-toto", "--rule", "H2a", "--into", folder)
    assert toolkit(*arguments).code == 0  # an empty folder is as good as none
    before = snapshot(tmp_path)
    toolkit(*arguments).refused(2, "nothing is overwritten", "--into")
    assert snapshot(tmp_path) == before


def test_it_is_written_where_one_stands_unless_told_otherwise(toolkit, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert toolkit("export", "published", "--as", "in-toto", "--rule", "H2a").code == 0
    assert list(snapshot(tmp_path)) == ["published-in-toto/H2a.statement.json"]


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("in-toto", "--run", "gate1-*"), 2, ("no choice of runs", "every-eval-ever")),
        (("every-eval-ever", "--rule", "H2a"), 2, ("no choice of rules", "in-toto")),
        (("in-toto", "--episodes"), 2, ("no choice of episodes",)),
        (("every-eval-ever", "--run", "nobody"), 2, ("no run 'nobody'", "15 runs")),
        (("every-eval-ever", "--episodes"), 3, ("holds no episodes",)),
        (("in-toto", "--rule", "H99"), 2, ("H99",)),
        (("in-toto", "--date", "2026-11-25"), 2, ("no choice of date", "every-eval-ever")),
        (("every-eval-ever", "--date", "yesterday"), 2, ()),
        (("ro-crate",), 2, ("every-eval-ever",)),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(toolkit, tmp_path, options, code, says) -> None:
    toolkit("export", "published", "--as", *options, "--into", tmp_path / "out").refused(code, *says)
    assert snapshot(tmp_path) == {}


def test_a_file_that_was_changed_leaves_no_half_of_an_export(toolkit, alone, tmp_path) -> None:
    file = alone.registers / "published/runs/train-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    before = snapshot(tmp_path)
    for form, options in FORMATS.items():
        toolkit("export", "published", "--as", form, *options, "--into", tmp_path / "out").refused(4, "runs")
    assert snapshot(tmp_path) == before


def test_a_study_is_exported_by_its_path(toolkit: Toolkit, alone: Home, tmp_path: Path) -> None:
    study = alone.registers / "published"
    done = toolkit("export", study, "--as", "in-toto", "--rule", "H2a", "--into", tmp_path / "out", "--json")
    assert done.json()["study"] == "published"
    (statement,) = (tmp_path / "out").iterdir()
    assert json.loads(statement.read_text(encoding="utf-8"))["predicate"]["study"]["name"] == "published"
