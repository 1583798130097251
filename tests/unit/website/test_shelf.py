"""The shelf: what comes back is what was put there, made by the same code from the same input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.website.shelf import Shelf, code_digest

if TYPE_CHECKING:
    from pathlib import Path

CODE = "a" * 64


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Shelf("things", CODE)


def test_a_new_shelf_is_empty_and_holds_nothing(shelf: Shelf) -> None:
    assert shelf.is_empty
    assert shelf.take("anything") is None


@pytest.mark.parametrize("content", [b"", b"\n", b"text\nof lines", b"\x00\xff"])
def test_what_was_put_comes_back(shelf: Shelf, content: bytes) -> None:
    shelf.put("this", content)
    assert shelf.take("this") == content
    assert shelf.take("that") is None
    assert not shelf.is_empty


def test_other_code_has_another_shelf(shelf: Shelf) -> None:
    shelf.put("this", b"made by the one")
    assert Shelf("things", "b" * 64).take("this") is None
    assert Shelf("things", CODE[:16] + "b" * 48).take("this") is None


def test_what_was_changed_on_the_shelf_is_not_taken(shelf: Shelf) -> None:
    shelf.put("this", b"what was put")
    (place,) = shelf.folder.iterdir()
    whole = place.read_bytes()
    for damaged in (b"", b"\n", whole[:-1], whole + b"!", b"<script>", whole.replace(b"what", b"that")):
        place.write_bytes(damaged)
        assert shelf.take("this") is None


def test_what_was_kept_for_another_input_is_not_taken(shelf: Shelf) -> None:
    shelf.put("this", b"of this")
    (place,) = shelf.folder.iterdir()
    shelf.put("that", b"of that")
    (other,) = set(shelf.folder.iterdir()) - {place}
    place.write_bytes(other.read_bytes())
    assert shelf.take("this") is None


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toolkit").write_text("a file where the folder would be", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shelf = Shelf("things", CODE)
    shelf.put("this", b"content")
    assert shelf.take("this") is None


def test_the_code_is_its_files_and_its_packages(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("one", encoding="utf-8")
    first = code_digest([source], ["jinja2"])
    assert code_digest([source], ["jinja2"]) == first
    assert code_digest([source], []) != first
    source.write_text("two", encoding="utf-8")
    assert code_digest([source], ["jinja2"]) != first
