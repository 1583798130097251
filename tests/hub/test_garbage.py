"""What answers in the Hub's place, or answers what no Hub does, ends in words and in exit 3."""

from pathlib import Path

import pytest

from tests.conftest import run
from tests.hub import handler
from tests.hub.conftest import NAME, expect, put
from tests.hub.handler import Handler
from tests.hub.server import FixtureHub

SHA = "0123456789abcdef0123456789abcdef01234567"
INFO = b'{"id": "group/study", "sha": %s, "tags": [], "branches": [], "converts": [], "siblings": []}'
ANSWERS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "an empty object": (200, {}, b"{}"),
    "null": (200, {}, b"null"),
    "text": (200, {}, b'"x"'),
    "a log-in page": (200, {"Content-Type": "text/html"}, b"<html>log in</html>"),
    "a redirect to itself": (302, {"Location": "/again"}, b""),
    "a redirect to nowhere": (302, {"Location": "http://[bad/"}, b""),
    "bad gzip": (200, {"Content-Encoding": "gzip"}, b"no gzip"),
    "endless depth": (200, {}, b"[" * 200_000),
    "no text": (200, {}, b"\xff\xfe\x00"),
    "a path for a commit": (200, {}, INFO % b'"../../../../evil"'),
    "a short commit": (200, {}, INFO % b'"0123abc"'),
    "no commit": (200, {}, INFO % b"null"),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "pull": ("registers", "pull", NAME),
    "pull a commit": ("registers", "pull", f"{NAME}@{SHA}"),
    "push": ("registers", "push", "published", NAME, "--tag", "v1"),
    "sql": ("sql", "FROM runs", "--study", NAME, "--remote"),
}


@pytest.fixture(params=list(ANSWERS))
def garbage(hub: FixtureHub, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    status, headers, body = ANSWERS[request.param]

    def serve(self: Handler) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._send(status, body, headers)

    for method in ("do_GET", "do_HEAD", "do_POST", "do_PUT"):
        monkeypatch.setattr(Handler, method, serve)
    monkeypatch.setattr(Handler, "_hits", lambda *_: False)


@pytest.mark.parametrize("command", list(COMMANDS))
def test_garbage_is_said_and_nothing_is_taken_from_it(garbage: None, command: str) -> None:
    done = run(*COMMANDS[command], "--json")
    assert done.code == 3
    assert list(done.json()) == ["error"]
    assert done.json()["error"]["remedy"]


def test_an_address_that_is_none_is_said(hub: FixtureHub, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("http://[bad", "ftp://127.0.0.1", "nothing", "http://127.0.0.1:99999"):
        monkeypatch.setenv("HF_ENDPOINT", address)
        for command in COMMANDS.values():
            assert run(*command).code == 3


def test_a_proxy_of_a_kind_that_is_not_installed_is_said(
    hub: FixtureHub, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import utils

    def session() -> None:
        raise ImportError("Using SOCKS proxy, but the 'socksio' package is not installed")

    monkeypatch.setattr(utils, "get_session", session)
    expect(run("registers", "pull", NAME), 3, "socksio")


def test_an_interruption_is_not_taken_for_garbage(
    hub: FixtureHub, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolkit.registers.hub.client import telling

    with pytest.raises(KeyboardInterrupt), telling(NAME, "the pull"):
        raise KeyboardInterrupt


def test_a_tag_whose_commit_is_none_is_not_believed(
    hub: FixtureHub, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(hub, rows, tag="v1")
    answer = Handler.info

    def odd(self: Handler, repo: object, revision: str = "main") -> None:
        if revision == "v1":
            self._json({"id": NAME, "sha": "../x"})
        else:
            answer(self, repo, revision)

    routes = [(method, path, odd if does is answer else does) for method, path, does in handler.ROUTES]
    monkeypatch.setattr(handler, "ROUTES", tuple(routes))
    expect(run("registers", "push", rows, NAME, "--tag", "v1"), 3, "40 hexadecimal digits")
