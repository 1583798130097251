"""Commands at their edges: damaged rows, readers that leave, queries without end, reproduction."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit, snapshot
from tests.row_study import with_value
from tests.unit.registers import test_study as damaged
from toolkit.errors import IncompleteError
from toolkit.places import Home
from toolkit.registers.arrow import row_sha256
from toolkit.site import build


@pytest.mark.slow
def test_reproduce_builds_the_site_and_ends_with_the_table(toolkit: Toolkit, tmp_path: Path) -> None:
    result = toolkit("reproduce", "--site", tmp_path / "site")
    assert result.code == 0
    assert (tmp_path / "site" / "index.html").is_file()
    assert "gate2" in result.out
    document = toolkit("reproduce", "--site", tmp_path / "site", "--json").json()
    assert document["site"]["changed"] == []
    assert toolkit("site", "check", "--folder", tmp_path / "site").code == 0
    assert len(document["decisions"]) == 21 + 23 + 4 + 9 + 20 + 9 + 7 + 7 + 6
    assert [audit["study"] for audit in document["audits"]] == [
        "bfcl",
        "coupled",
        "embedded",
        "map",
        "worlds",
    ]
    for audit in document["audits"]:
        assert (audit["verdict"], audit["sample"]) == ("verified", 8)
        assert f"--sample 8 --seed {audit['seed']}" not in result.out
        assert f"toolkit registers audit --study {audit['study']} --sample 8 --seed " in result.out
    _, _, summary = result.out.partition("What was reproduced\n")
    labels = [line.split()[0] for line in summary.splitlines()]
    assert labels == ["rows", "registered", "played", "decided", "site"]
    assert f"{sum(table['rows'] for table in document['registers']):,} rows of published, bfcl," in summary


def test_reproduce_does_without_the_packages_of_the_site_unless_a_folder_is_named(
    toolkit: Toolkit, alone: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack = IncompleteError("the site needs packages that are not installed", remedy="pip install them")
    monkeypatch.setattr(build, "lacking_packages", lambda: lack)
    result = toolkit("reproduce")
    assert result.code == 0, result.err
    assert "site        not built: the site needs packages that are not installed; pip install" in result.out
    assert toolkit("reproduce", "--json").json()["site"] is None
    toolkit("reproduce", "--site", alone.root / "there").refused(3, "the site needs packages")


def with_wild_rows(folder: Path) -> None:
    """Put a consistent manifest over impossible rows: more successes than episodes."""
    table = with_value(damaged.table_of(folder), "successes", 0, 900)
    damaged.rewrite(folder, table)
    damaged.reseal(folder, lambda d: d["tables"]["evaluations"].update(row_sha256=row_sha256(table)))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (damaged.READ["no column"], "column 'successes' of evaluations is missing"),
        (with_wild_rows, "larger than it can be"),
    ],
)
def test_damaged_rows_end_in_one_message_and_nothing_is_written(toolkit, alone: Home, damage, says) -> None:
    """Other damages are in `tests/transcripts/damaged.md`."""
    damage(alone.study_folder("published"))
    before = snapshot(alone.root)
    toolkit("reproduce", "--json").refused(4)
    toolkit("decide", "H2a", "H1b").refused(4, says)
    assert snapshot(alone.root) == before


@pytest.mark.parametrize("command", ["registers schema", "registers schema --json"])
def test_a_reader_may_leave_early(command: str) -> None:
    line = f"{sys.executable} -m toolkit {command} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    assert done.stdout.splitlines()[-1] in ("0", "141")  # 141 where the output was longer than the pipe
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["x" * 201, "\udcff"])
def test_a_name_that_is_too_long_or_no_text_is_refused(toolkit: Toolkit, name: str) -> None:
    toolkit("draw", 0, "get_order", name, 0).refused(2, "a name")


def test_a_query_that_does_not_stop_ends_the_command_with_one_message() -> None:
    query = "SELECT count(*) FROM runs WHERE list_sum(range(150000000)) < 0"
    command = [sys.executable, "-m", "toolkit", "sql", query, "--study", "published", "--timeout", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the query takes too long\n")
    assert len(done.stderr.splitlines()) == 3
