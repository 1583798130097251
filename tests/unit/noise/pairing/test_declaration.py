"""Declarations of tools: what is said of each, and what is refused."""

from pathlib import Path

import pytest

from toolkit.errors import DamagedError, IncompleteError
from toolkit.noise.declaration import parse_declaration, read_declaration
from toolkit.noise.tools import Tool

FILES = """
name = "files"

[tools.read_file]
kind = "read"
resource = "path"

[tools.list_files]
kind = "list"
shows = "files"
offset = "from"
stale = "never"

[tools.move_file]
kind = "write"
resource = "source"
repeatable = true
"""


def test_a_declaration_says_what_noise_has_to_know() -> None:
    said = parse_declaration(FILES, "files.toml")
    assert said.name == "files"
    assert said.tools == {
        "read_file": Tool("read_file", "read", "path", stale="recorded"),
        "list_files": Tool("list_files", "list", shows="files", offset="from", stale="never"),
        "move_file": Tool("move_file", "write", "source", repeatable=True, stale="recorded"),
        "wait": Tool("wait", "control"),
    }
    assert "stale_read" not in said.tools["list_files"].faults


def test_its_digest_is_of_what_it_says() -> None:
    said = parse_declaration(FILES, "files.toml")
    again = parse_declaration(FILES.replace("\n\n", "\n# a comment\n"), "files.toml")
    other = parse_declaration(FILES.replace('"from"', '"offset"'), "files.toml")
    assert said.sha256 == again.sha256 != other.sha256


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('name = "files"', "name = 3", "a name, and a table"),
        ('name = "files"', 'names = "files"', "a name, and a table"),
        ('kind = "read"', 'kind = "reads"', "no kind 'reads'"),
        ('kind = "read"', "", "has a kind"),
        ('resource = "path"', "resource = 3", "resource is a text"),
        ('resource = "path"', 'resource = ""', "resource is a text"),
        ('resource = "path"', "fields = [3]", "fields is a list of names"),
        ('resource = "path"', 'recourse = "path"', "no 'recourse'"),
        ("repeatable = true", "repeatable = 1", "true or false"),
        ('stale = "never"', 'stale = "often"', "no stale 'often'"),
        ("[tools.move_file]", "[tools.wait]", "always there"),
        ("[tools.move_file]", "[tools.", "no TOML"),
    ],
)
def test_what_is_no_declaration_is_refused_by_its_place(before: str, after: str, message: str) -> None:
    assert before in FILES
    with pytest.raises(DamagedError, match=message) as refused:
        parse_declaration(FILES.replace(before, after), "files.toml")
    assert "files.toml" in str(refused.value)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError):
        read_declaration(tmp_path / "none.toml")


def test_a_call_is_about_the_text_of_its_argument() -> None:
    said = parse_declaration(FILES, "files.toml")
    read, listed = said.tools["read_file"], said.tools["list_files"]
    assert said.resource(read, {"path": "a b"}) == "a b"
    assert said.resource(read, {"path": [1, "b"]}) == '[1,"b"]'
    assert said.resource(read, {}) == said.resource(listed, {"from": 3}) == "*"
