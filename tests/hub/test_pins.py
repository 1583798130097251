"""What is remembered of a repository's tags is neither lost, nor overlooked, nor believed blindly."""

import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.hub.conftest import NAME, cached, expect, pull
from tests.hub.server import FixtureHub
from toolkit.errors import VerificationError
from toolkit.files import in_turn
from toolkit.registers.hub import revision
from toolkit.registers.hub.revision import Pin, change_pin, read_pins

SHA = "0123456789abcdef0123456789abcdef01234567"


def remember_many(first: int) -> None:
    for number in range(first, first + 15):
        change_pin(NAME, f"v{number}", lambda _: Pin(SHA, is_tag=True))


@pytest.mark.parametrize("make", [threading.Thread, multiprocessing.get_context("fork").Process])
def test_pulls_at_once_lose_no_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    workers = [make(target=remember_many, args=(first,)) for first in (0, 100, 200)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(read_pins(NAME)) == 45


def test_one_waits_for_the_other(tmp_path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with in_turn(tmp_path / "lock"):
            entered.set()

    other = threading.Thread(target=enter)
    with in_turn(tmp_path / "lock"):
        other.start()
        assert not entered.wait(0.2)
    other.join()
    assert entered.is_set()


def test_a_tag_that_moves_between_two_pulls_at_once_is_not_overlooked(
    hub: FixtureHub, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have read that nothing is remembered; the other is the first to write."""
    other, turns = "f" * 40, revision.in_turn

    def after_the_other(path: Path) -> object:
        monkeypatch.setattr(revision, "in_turn", turns)
        change_pin(NAME, "v1.0.0", lambda _: Pin(other, is_tag=True))
        return turns(path)

    monkeypatch.setattr(revision, "in_turn", after_the_other)
    expect(pull(), 1, "the tag v1.0.0 was moved")
    assert read_pins(NAME)["v1.0.0"].commit == other


def test_a_tag_that_became_a_branch_is_held_to_its_commit(hub: FixtureHub, warm: Path, commit: str) -> None:
    hub.store.untag(NAME, "v1.0.0")
    hub.store.repository(NAME).branches["v1.0.0"] = commit
    expect(pull(), 0, "v1.0.0 was a tag and is none now")
    assert read_pins(NAME)["v1.0.0"] == Pin(commit, is_tag=True)
    moved = hub.store.commit(NAME, {".note": b"hidden"}, branch="v1.0.0").sha
    expect(pull(), 1, moved, "it is no tag any more")
    assert pull("@v1.0.0", "--accept-moved").code == 0
    assert read_pins(NAME)["v1.0.0"] == Pin(moved, is_tag=False)


def test_pins_that_are_none_are_damage(hub: FixtureHub, warm: Path) -> None:
    for content in (
        "{",
        "[]",
        "null",
        "[" * 200_000,
        '{"v1": {"commit": "../../x", "is_tag": true}}',
        '{"v1": {"commit": "x"}}',
        json.dumps({"v1": {"commit": SHA, "is_tag": "no"}}),
    ):
        (warm.parents[1] / revision.PINS).write_text(content)
        for options in ((), ("--offline",)):
            expect(pull("@v1", *options), 4, "what was remembered of the repository's tags cannot be read")


def test_a_pin_that_cannot_be_written_is_a_remark_where_the_commit_is_in_the_cache(
    hub: FixtureHub, commit: str, tmp_path: Path
) -> None:
    # Permissions do not stop every user: a folder in the lock's place stops all.
    (cached(tmp_path, commit).parents[1] / revision.PINS_LOCK).mkdir(parents=True)
    expect(pull(), 3, "cannot be written")
    assert pull(f"@{commit}").code == 0
    expect(pull(), 0, f"that {NAME}@v1.0.0 is commit {commit} is not remembered")


def test_a_refusal_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    change_pin(NAME, "v1", lambda _: Pin(SHA, is_tag=True))

    def refuse(_: Pin | None) -> Pin:
        raise VerificationError("no")

    with pytest.raises(VerificationError):
        change_pin(NAME, "v1", refuse)
    assert read_pins(NAME) == {"v1": Pin(SHA, is_tag=True)}
