"""A command that was cut short goes on where it stopped, and nothing is ever half done."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.forge.server import Authority
from tests.unit.prereg.drafts import (
    Scripted,
    add_to,
    amendment,
    check_rules,
    exit_codes,
    freeze_with,
    is_untouched,
    problems,
    source,
    start_worker,
    verify,
    write_draft,
)
from toolkit.errors import IncompleteError, ToolkitError, UsageError
from toolkit.prereg.freeze import open_draft
from toolkit.prereg.pending import PENDING, locked
from toolkit.prereg.registration import is_draft, load_registration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.prereg.timestamping import Online


@pytest.fixture
def servers() -> Iterator[tuple[Authority, Authority]]:
    with Authority("A") as one, Authority("B") as other:
        yield one, other


def as_sources(servers: tuple[Authority, Authority]) -> tuple[Online, Online]:
    return source(servers[0], "Authority A"), source(servers[1], "Authority B")


def test_a_token_that_was_obtained_is_kept(draft: Path, servers: tuple[Authority, Authority]) -> None:
    one, other = as_sources(servers)
    servers[1]._fault = "HTTP 404"  # noqa: SLF001 - it is down
    with pytest.raises(IncompleteError, match="no timestamp"):
        freeze_with(draft, one, other)
    assert is_untouched(draft)
    kept = (draft / PENDING / "evidence" / "freeze.authority-a.tsr").read_bytes()
    servers[1]._fault = None  # noqa: SLF001 - it is up
    freeze_with(draft, one, other)
    assert [len(server.requests) for server in servers] == [1, 2]
    assert (draft / "evidence" / "freeze.authority-a.tsr").read_bytes() == kept
    assert verify(draft, one.trusted, other.trusted).verdict == "verified"
    assert not (draft / PENDING).exists()


def test_after_a_change_every_authority_is_asked_anew(
    draft: Path, servers: tuple[Authority, Authority]
) -> None:
    one, other = as_sources(servers)
    servers[1]._fault = "HTTP 404"  # noqa: SLF001 - it is down
    with pytest.raises(IncompleteError):
        freeze_with(draft, one, other)
    servers[1]._fault = None  # noqa: SLF001 - it is up
    (draft / "protocol.md").write_bytes(b"# Protocol, revised\n")
    freeze_with(draft, one, other)
    assert [len(server.requests) for server in servers] == [2, 2]
    assert problems(verify(draft, one.trusted, other.trusted)) == []


@pytest.mark.parametrize("junk", [b"", b"0\x00", b"<html>"])
def test_a_damaged_token_that_waits_is_obtained_anew(
    draft: Path, servers: tuple[Authority, Authority], junk: bytes
) -> None:
    one, other = as_sources(servers)
    servers[1]._fault = "HTTP 404"  # noqa: SLF001 - it is down
    with pytest.raises(IncompleteError):
        freeze_with(draft, one, other)
    (draft / PENDING / "evidence" / "freeze.authority-a.tsr").write_bytes(junk)
    servers[1]._fault = None  # noqa: SLF001 - it is up
    freeze_with(draft, one, other)
    assert problems(verify(draft, one.trusted, other.trusted)) == []


def test_a_token_that_waited_too_long_is_obtained_anew(
    draft: Path, servers: tuple[Authority, Authority], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One authority answered, the other was down for three days: the first is asked again."""
    from datetime import UTC, datetime, timedelta

    one, other = as_sources(servers)
    monkeypatch.setattr(servers[0], "_at", datetime.now(UTC) - timedelta(days=3))
    monkeypatch.setattr(servers[1], "_fault", "HTTP 404")
    with pytest.raises(IncompleteError):
        freeze_with(draft, one, other)
    monkeypatch.setattr(servers[0], "_at", None)
    monkeypatch.setattr(servers[1], "_fault", None)
    freeze_with(draft, one, other)
    assert problems(verify(draft, one.trusted, other.trusted)) == []


def test_a_process_killed_while_it_waits_leaves_a_draft(
    draft: Path, servers: tuple[Authority, Authority]
) -> None:
    servers[1]._fault = "slow"  # noqa: SLF001
    one, other = as_sources(servers)
    process = start_worker("freeze", [draft], (one, other), [-1])
    deadline = time.monotonic() + 20
    while not servers[1].requests and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(UsageError, match="another command is at work"):
        freeze_with(draft, one, other)
    os.killpg(process.pid, signal.SIGKILL)
    exit_codes(process)
    assert is_untouched(draft)
    assert is_draft(draft)
    servers[1]._fault = None  # noqa: SLF001 - it answers again
    freeze_with(draft, one, other)
    assert [len(server.requests) for server in servers] == [1, 2]
    assert problems(verify(draft, one.trusted, other.trusted)) == []


FILES_OF_A_FREEZE = 10  # list, two tokens, two requests, two roots, trust file, record, chain


def test_a_freeze_killed_between_any_two_renames_is_completed(
    tmp_path: Path, servers: tuple[Authority, Authority]
) -> None:
    one, other = as_sources(servers)
    folders = [write_draft(tmp_path / str(death)) for death in range(FILES_OF_A_FREEZE + 1)]
    codes = exit_codes(start_worker("freeze", folders, (one, other), [*range(FILES_OF_A_FREEZE + 1)]))
    assert codes == [-signal.SIGKILL] * FILES_OF_A_FREEZE + [0]
    asked = [len(server.requests) for server in servers]
    for folder in folders[:-1]:
        with pytest.raises(IncompleteError):
            load_registration(folder)
        assert open_draft(folder, check_rules).name == "small"
        freeze_with(folder, one, other)
        assert verify(folder, one.trusted, other.trusted).verdict == "verified"
        leftover = [p for p in folder.rglob(".*") if p.suffix == ".part"]
        assert not [p for p in leftover if p.parent != folder and p.parent.name != "evidence"]
    assert [len(server.requests) for server in servers] == asked
    assert verify(folders[-1], one.trusted, other.trusted).verdict == "verified"


FILES_OF_AN_AMENDMENT = 8  # two tokens, two requests, two roots, the amendment, chain


def test_an_amendment_killed_between_any_two_renames_is_completed(
    tmp_path: Path, servers: tuple[Authority, Authority]
) -> None:
    one, other = as_sources(servers)
    folders = [write_draft(tmp_path / str(death)) for death in range(FILES_OF_AN_AMENDMENT + 1)]
    for folder in folders:
        freeze_with(folder, one, other)
    codes = exit_codes(start_worker("amend", folders, (one, other), [*range(FILES_OF_AN_AMENDMENT + 1)]))
    assert codes == [-signal.SIGKILL] * FILES_OF_AN_AMENDMENT + [0]
    stuck = {}
    for death, folder in enumerate(folders[:-1]):
        try:
            if not load_registration(folder).amendments:
                add_to(folder, amendment(), one, other)
            assert problems(verify(folder, one.trusted, other.trusted)) == []
        except ToolkitError as error:
            stuck[death] = error.problem
    assert stuck == {}


def test_a_lock_left_by_a_process_that_ended_holds_nobody_up(draft: Path) -> None:
    (draft / ".lock").write_bytes(b"")
    with locked(draft):
        assert (draft / ".lock").exists()


def test_whoever_waited_with_an_old_lock_does_not_share_the_new_one(
    draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it, its holder may end and remove it, and a third one come."""
    import fcntl

    holds = []

    def late(stream, operation):
        if not holds:
            holds.append(1)
            (draft / ".lock").unlink()
            third.__enter__()
        fcntl_flock(stream, operation)

    fcntl_flock = fcntl.flock
    third = locked(draft)
    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(UsageError, match="another command is at work"), locked(draft):
        pass
    third.__exit__(None, None, None)


def test_a_file_where_the_waiting_folder_has_to_be_gives_way(
    draft: Path, servers: tuple[Authority, Authority]
) -> None:
    one, other = as_sources(servers)
    (draft / PENDING).write_bytes(b"a file where a folder has to be")
    freeze_with(draft, one, Scripted(other))
    assert not (draft / PENDING).exists()
