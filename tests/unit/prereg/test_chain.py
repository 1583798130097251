"""The chain of later files: lines can only be added."""

import hashlib
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DamagedError, ToolkitError, VerificationError
from toolkit.prereg.chain import extend_chain, parse_chain

FROZEN = hashlib.sha256(b"frozen").hexdigest()
NAMES = ("record.toml", "amendments/A1.toml", "deviations/D1.toml")


def chain(*names: str, frozen: str = FROZEN) -> bytes:
    raw = b""
    for name in names or NAMES:
        raw = extend_chain(raw, frozen, name, name.encode())
    return raw


def test_the_links_are_those_of_a_shell(tmp_path) -> None:
    """The recipe in the documentation, in another language."""
    script = """
    link=$1; shift
    for name in "$@"; do
      rest="$(printf %s "$name" | sha256sum | cut -d' ' -f1)  $name"
      link=$(printf '%s\\n%s\\n' "$link" "$rest" | sha256sum | cut -d' ' -f1)
      printf '%s  %s\\n' "$link" "$rest"
    done
    """
    done = subprocess.run(
        ["sh", "-c", script, "sh", FROZEN, *NAMES], capture_output=True, check=True, cwd=tmp_path
    )
    assert done.stdout == chain()


def test_entries_know_their_place() -> None:
    entries = parse_chain(chain(), FROZEN, "here")
    assert [(entry.number, entry.name, entry.id) for entry in entries] == [
        (1, "record.toml", ""),
        (2, "amendments/A1.toml", "A1"),
        (3, "deviations/D1.toml", "D1"),
    ]


def test_an_entry_is_timestamped_with_all_before_it() -> None:
    entries = parse_chain(chain(), FROZEN, "here")
    assert [entry.text for entry in entries] == [chain(*NAMES[: n + 1]) for n in range(3)]


@given(st.integers(0, len(chain()) - 1), st.integers(1, 255))
def test_no_byte_can_be_changed(at, by) -> None:
    raw = bytearray(chain())
    raw[at] ^= by
    with pytest.raises(ToolkitError):
        parse_chain(bytes(raw), FROZEN, "here")


def lines() -> list[bytes]:
    return chain().splitlines(keepends=True)


@pytest.mark.parametrize(
    "raw",
    [
        b"".join(lines()[1:]),
        b"".join([lines()[0], lines()[2]]),
        b"".join([lines()[1], lines()[0], lines()[2]]),
        chain(frozen=hashlib.sha256(b"other").hexdigest()),
    ],
    ids=["first line dropped", "second line dropped", "lines exchanged", "another freeze"],
)
def test_a_line_that_is_dropped_or_moved_is_found(raw) -> None:
    with pytest.raises(VerificationError, match="the chain of later files is broken"):
        parse_chain(raw, FROZEN, "here")


@pytest.mark.parametrize(
    "names",
    [
        ("amendments/A.toml", "deviations/D.toml", "amendments/A.toml"),
        ("../a.toml",),
        ("/etc/passwd",),
        ("amendments/A 1.toml",),
        ("amendments/more/A1.toml",),
        ("notes.toml",),
    ],
    ids=["twice", "a path upwards", "an absolute path", "a blank", "another place", "another file"],
)
def test_a_name_that_a_chain_cannot_have_is_refused(names) -> None:
    with pytest.raises(DamagedError):
        chain(*names)


def test_a_chain_without_its_last_line_end_is_refused() -> None:
    with pytest.raises(DamagedError):
        parse_chain(chain().rstrip(), FROZEN, "here")
