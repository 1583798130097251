"""`toolkit export` writes a new folder, all or nothing, and says in one message what it does not take."""

import json
from pathlib import Path

import pytest

from tests.conftest import Toolkit, snapshot
from toolkit.places import Home

FORMATS = {
    "every-eval-ever": ("--run", "gate1-*"),
    "in-toto": ("--rule", "H2a"),
}


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
