"""A folder in which a study is begun, and what is done there: drafting, importing, deciding."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run
from toolkit.drafting.pilot import draft_record
from toolkit.places import HOME_VARIABLE

Row = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, rows: list[Row], *left_out: str) -> Path:
    """Write a log without some of its columns."""
    names = [name for name in rows[0] if name not in left_out]
    with path.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def draft(project: Path, rows: list[Row], baseline: str, *options: str, left_out: Iterable[str] = ()) -> None:
    """Begin a study of a log; what is imported is what it was begun with, so that no record is kept."""
    table = write(project / "pilot.csv", rows, *left_out).name
    done = run("new-study", "mine", "--table", table, "--baseline", baseline, *options, "--into", ".")
    assert done.code == 0, done.err
    draft_record(project, "mine").unlink()


def fill_in(project: Path, *changes: tuple[str, str]) -> None:
    """Fill in a draft, and replace words of its files by others."""
    paths = [*project.glob("prereg/mine/*.*"), project / "cards/mine.md", project / "mappings/mine.toml"]
    texts = {path: path.read_text(encoding="utf-8").replace("FILL IN", "said") for path in paths}
    for old, new in changes:
        assert any(old in text for text in texts.values()), old
        texts = {path: text.replace(old, new) for path, text in texts.items()}
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


def decided(rule: str = "H1") -> Row:
    """Decide a rule of the study."""
    return run("decide", rule, "--study", "mine", "--json").json()[0]
