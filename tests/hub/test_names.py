"""Names of studies on the Hub, and the commits that are remembered for them."""

import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import run
from tests.hub.conftest import NAME, SHA, cached, expect, pull
from tests.hub.server import FixtureHub
from toolkit.errors import UsageError, VerificationError
from toolkit.registers.hub import client
from toolkit.registers.hub.client import Pin, change_pin, looks_like_reference, parse_reference, read_pins


@pytest.mark.parametrize(
    ("text", "repository", "revision"),
    [
        ("group/study", "group/study", "main"),
        ("group/study@v1.0.0", "group/study", "v1.0.0"),
        (f"a/b@{SHA[:7]}", "a/b", SHA[:7]),
        (f"group/study@{SHA}", "group/study", SHA),
        ("hf://datasets/group/my.study@refs%2Fpr%2F1", "group/my.study", "refs/pr/1"),
    ],
)
def test_a_reference_names_a_repository_and_a_revision(text: str, repository: str, revision: str) -> None:
    reference = parse_reference(text)
    assert (reference.repository, reference.revision, reference.asked) == (repository, revision, text)
    assert reference.is_commit == (revision == SHA)


@pytest.mark.parametrize(
    "text",
    [
        "study",
        "a/b/c",
        "/a",
        "a/",
        "../b",
        "./b",
        "a/b@",
        "a/b@ v",
        "a b/c",
        "a--b/c",
        "a/b@v1@v2",
        "a/..",
        "",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="names no study on the Hub"):
        parse_reference(text)


LONG = [
    f"group/study@{'v' * 201}",
    f"hf://datasets/group/study@{'v' * 5000}",
    f"group/{'s' * 300}",
    "x" * 5000,
]


@pytest.mark.parametrize("text", LONG, ids=lambda text: f"{text[:24]}, {len(text)} characters")
def test_a_reference_that_is_too_long_is_wrong_usage_everywhere(text: str) -> None:
    for command in (
        ("registers", "pull", text),
        ("registers", "verify", "--study", text),
        ("registers", "push", "published", text),
        ("sql", "FROM runs", "--study", text),
        ("sql", "FROM runs", "--study", text, "--remote"),
        ("decide", "--all", "--study", text),
        ("registers", "diff", "published", text),
    ):
        assert run(*command).code == 2, command


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        repository = parse_reference(text).repository
    except UsageError:
        return
    assert looks_like_reference(text)
    assert repository.count("/") == 1


def remember_many(first: int) -> None:
    for number in range(first, first + 15):
        change_pin(NAME, f"v{number}", lambda _: Pin(SHA, is_tag=True))


@pytest.mark.parametrize("make", [threading.Thread, multiprocessing.get_context("fork").Process])
def test_pulls_at_once_lose_no_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path))
    workers = [make(target=remember_many, args=(first,)) for first in (0, 100, 200)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(read_pins(NAME)) == 45


def test_a_refusal_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path))
    change_pin(NAME, "v1", lambda _: Pin(SHA, is_tag=True))

    def refuse(_: Pin | None) -> Pin:
        raise VerificationError("no")

    with pytest.raises(VerificationError):
        change_pin(NAME, "v1", refuse)
    assert read_pins(NAME) == {"v1": Pin(SHA, is_tag=True)}


def test_a_tag_that_moves_between_two_pulls_at_once_is_not_overlooked(
    hub: FixtureHub, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have read that nothing is remembered; the other is the first to write."""
    other, turns = "f" * 40, client.in_turn

    def after_the_other(path: Path) -> object:
        monkeypatch.setattr(client, "in_turn", turns)
        change_pin(NAME, "v1.0.0", lambda _: Pin(other, is_tag=True))
        return turns(path)

    monkeypatch.setattr(client, "in_turn", after_the_other)
    expect(pull(), 1, "the tag v1.0.0 was moved")
    assert read_pins(NAME)["v1.0.0"].commit == other


def test_a_moved_tag_is_refused_until_it_is_accepted(hub: FixtureHub, warm: Path, commit: str) -> None:
    moved = hub.store.commit(NAME, {".note": b"hidden, so that the study is the same"}).sha
    hub.store.move_tag(NAME, "v1.0.0", moved)
    expect(pull(), 1, "the tag v1.0.0 was moved", commit, moved)
    tagged = ("--study", f"{NAME}@v1.0.0")
    assert run("decide", "H2a", *tagged).code == 1
    assert run("sql", "FROM runs", *tagged, "--remote").code == 1
    assert pull(f"@{commit}").code == 0
    assert pull("@v1.0.0", "--accept-moved").code == 0
    assert pull("@v1.0.0", "--json").json()["origin"]["commit"] == moved


def test_a_tag_that_became_a_branch_is_held_to_its_commit(hub: FixtureHub, warm: Path, commit: str) -> None:
    hub.store.untag(NAME, "v1.0.0")
    hub.store.repository(NAME).branches["v1.0.0"] = commit
    expect(pull(), 0, "v1.0.0 was a tag and is none now")
    assert read_pins(NAME)["v1.0.0"] == Pin(commit, is_tag=True)
    moved = hub.store.commit(NAME, {".note": b"hidden"}, branch="v1.0.0").sha
    expect(pull(), 1, moved, "it is no tag any more")
    assert pull("@v1.0.0", "--accept-moved").code == 0
    assert read_pins(NAME)["v1.0.0"] == Pin(moved, is_tag=False)


def test_a_tag_that_is_gone_is_said_with_its_commit(hub: FixtureHub, warm: Path, commit: str) -> None:
    hub.store.untag(NAME, "v1.0.0")
    expect(pull(), 3, "the repository has no such revision", f"name {NAME}@{commit}")
    assert pull(f"@{commit}").code == 0


def test_a_moved_branch_is_followed(hub: FixtureHub, warm: Path) -> None:
    for _ in range(2):
        newest = hub.store.commit(NAME, {".note": b"again"}).sha
        assert pull("", "--json").json()["origin"]["commit"] == newest


def test_pins_that_are_none_are_damage(hub: FixtureHub, warm: Path) -> None:
    for content in (
        *("{", "[]", "null", "[" * 200_000, '{"v1": {"commit": "x"}}'),
        '{"v1": {"commit": "../../x", "is_tag": true}}',
        json.dumps({"v1": {"commit": SHA, "is_tag": "no"}}),
    ):
        (warm.parents[1] / client.PINS).write_text(content)
        for options in ((), ("--offline",)):
            expect(pull("@v1", *options), 4, "what was remembered of the repository's tags cannot be read")


def test_a_pin_that_cannot_be_written_is_a_remark_where_the_commit_is_in_the_cache(
    hub: FixtureHub, commit: str, tmp_path: Path
) -> None:
    # Permissions do not stop every user: a folder in the lock's place stops all.
    (cached(tmp_path, commit).parents[1] / client.PINS_LOCK).mkdir(parents=True)
    expect(pull(), 3, "cannot be written")
    assert pull(f"@{commit}").code == 0
    expect(pull(), 0, f"that {NAME}@v1.0.0 is commit {commit} is not remembered")
