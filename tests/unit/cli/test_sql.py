"""`toolkit sql` prints as much as a reader can use, and writes the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit


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
