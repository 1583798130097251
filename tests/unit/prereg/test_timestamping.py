"""A command that was cut short goes on where it stopped, and nothing is ever half done."""

import contextlib
import os
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.prereg import drafts
from tests.unit.prereg.drafts import amendment, exit_codes, freeze_with, problems, start_worker, verify
from toolkit.errors import IncompleteError, UsageError
from toolkit.prereg.chain import PENDING, locked
from toolkit.prereg.registration import is_draft, load_registration


@pytest.fixture
def half(draft, servers, sources):
    """A draft for which one authority has answered, and the other was down."""
    servers[1].fault = "HTTP 404"
    with pytest.raises(IncompleteError, match="no timestamp"):
        freeze_with(draft, *sources)
    servers[1].fault = None
    return draft


def test_a_token_that_was_obtained_is_kept(half, servers, sources) -> None:
    assert drafts.is_untouched(half)
    kept = (half / PENDING / "evidence" / "freeze.authority-a.tsr").read_bytes()
    freeze_with(half, *sources)
    assert [len(server.requests) for server in servers] == [1, 2]
    assert (half / "evidence" / "freeze.authority-a.tsr").read_bytes() == kept
    assert verify(half, *sources).verdict == "verified"
    assert not (half / PENDING).exists()


def test_after_a_change_every_authority_is_asked_anew(half, servers, sources) -> None:
    (half / "protocol.md").write_bytes(b"# Protocol, revised\n")
    freeze_with(half, *sources)
    assert [len(server.requests) for server in servers] == [2, 2]
    assert problems(verify(half, *sources)) == []


@pytest.mark.parametrize("junk", [b"", b"0\x00", b"<html>"])
def test_a_damaged_token_that_waits_is_obtained_anew(half, sources, junk) -> None:
    (half / PENDING / "evidence" / "freeze.authority-a.tsr").write_bytes(junk)
    freeze_with(half, *sources)
    assert problems(verify(half, *sources)) == []


def test_a_token_that_waited_too_long_is_obtained_anew(draft, servers, sources) -> None:
    """One authority answered, the other was down for three days: the first is asked again."""
    servers[0].at, servers[1].fault = datetime.now(UTC) - timedelta(days=3), "HTTP 404"
    with pytest.raises(IncompleteError):
        freeze_with(draft, *sources)
    servers[0].at = servers[1].fault = None
    freeze_with(draft, *sources)
    assert problems(verify(draft, *sources)) == []


@pytest.mark.slow
def test_a_process_killed_while_it_waits_leaves_a_draft(draft, servers, sources) -> None:
    servers[1].fault = "slow"
    process = start_worker("freeze", [draft], sources, [-1])
    deadline = time.monotonic() + 20
    while not servers[1].requests and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(UsageError, match="another command is at work"):
        freeze_with(draft, *sources)
    os.killpg(process.pid, signal.SIGKILL)
    exit_codes(process)
    assert drafts.is_untouched(draft)
    assert is_draft(draft)
    servers[1].fault = None
    freeze_with(draft, *sources)
    assert [len(server.requests) for server in servers] == [1, 2]
    assert problems(verify(draft, *sources)) == []


FILES_OF_A_FREEZE = 10  # list, two tokens, two requests, two roots, trust file, record, chain
EVERY = pytest.param(tuple(range(FILES_OF_A_FREEZE)), marks=pytest.mark.slow)


@pytest.mark.parametrize("deaths", [(0, 9), EVERY], ids=["first and last", "every"])
def test_a_freeze_killed_between_two_renames_is_completed(tmp_path, servers, sources, deaths) -> None:
    lives = FILES_OF_A_FREEZE
    folders = [drafts.write_draft(tmp_path / str(death)) for death in (*deaths, lives)]
    codes = exit_codes(start_worker("freeze", folders, sources, [*deaths, lives]))
    assert codes == [-signal.SIGKILL] * len(deaths) + [0]
    asked = [len(server.requests) for server in servers]
    for folder in folders[:-1]:
        with pytest.raises(IncompleteError):
            load_registration(folder)
        assert drafts.opened(folder).name == "small"
        freeze_with(folder, *sources)
        assert verify(folder, *sources).verdict == "verified"
    assert [len(server.requests) for server in servers] == asked
    assert verify(folders[-1], *sources).verdict == "verified"


FILES_OF_AN_AMENDMENT = 8  # two tokens, two requests, two roots, the amendment, chain


@pytest.mark.slow
def test_an_amendment_killed_between_any_two_renames_is_completed(tmp_path, servers, sources) -> None:
    folders = [drafts.write_draft(tmp_path / str(death)) for death in range(FILES_OF_AN_AMENDMENT + 1)]
    for folder in folders:
        freeze_with(folder, *sources)
    codes = exit_codes(start_worker("amend", folders, sources, [*range(FILES_OF_AN_AMENDMENT + 1)]))
    assert codes == [-signal.SIGKILL] * FILES_OF_AN_AMENDMENT + [0]
    for folder in folders[:-1]:
        if not load_registration(folder).amendments:
            drafts.add_to(folder, amendment(), *sources)
        assert problems(verify(folder, *sources)) == []


def test_a_lock_left_by_a_process_that_ended_holds_nobody_up(draft) -> None:
    (draft / ".lock").write_bytes(b"")
    with locked(draft):
        assert (draft / ".lock").exists()


def test_whoever_waited_with_an_old_lock_does_not_share_the_new_one(draft, monkeypatch) -> None:
    """Between opening the file and locking it, its holder may end and remove it, and a third one come."""
    import fcntl

    lock = fcntl.flock
    with contextlib.ExitStack() as third:

        def late(stream, operation):
            monkeypatch.setattr(fcntl, "flock", lock)
            (draft / ".lock").unlink()
            third.enter_context(locked(draft))
            lock(stream, operation)

        monkeypatch.setattr(fcntl, "flock", late)
        with pytest.raises(UsageError, match="another command is at work"), locked(draft):
            pass


def test_a_file_where_the_waiting_folder_has_to_be_gives_way(draft, sources) -> None:
    (draft / PENDING).write_bytes(b"a file where a folder has to be")
    freeze_with(draft, *sources)
    assert not (draft / PENDING).exists()
