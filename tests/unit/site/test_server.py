"""Serving the site: its files, below its path, and nothing else."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.unit.site.reading import CSP
from toolkit.errors import IncompleteError, UsageError
from toolkit.site.server import SiteServer

Ask = Callable[..., http.client.HTTPResponse]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "study").mkdir(parents=True)
    (folder / "empty").mkdir()
    for name in (".toolkit-site", "index.html", "study/index.html", "study/a b.html", "site.js", "x.parquet"):
        (folder / name).write_text(name)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    return folder


@contextmanager
def served(site: Path, base: str = "/") -> Iterator[SiteServer]:
    server = SiteServer(site, 0, base)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def answer(server: SiteServer, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    response.text = response.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return response


@pytest.fixture
def ask(site: Path) -> Iterator[Ask]:
    with served(site, "/some/path") as server:
        yield partial(answer, server)


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/some/path/", "index.html", "text/html; charset=utf-8"),
        ("/some/path/index.html?x=1", "index.html", "text/html; charset=utf-8"),
        ("/some/path/study/", "study/index.html", "text/html; charset=utf-8"),
        ("/some/path/study/a%20b.html", "study/a b.html", "text/html; charset=utf-8"),
        ("/some/path/site.js", "site.js", "text/javascript; charset=utf-8"),
        ("/some/path/x.parquet", "x.parquet", "application/octet-stream"),
    ],
)
def test_a_file_comes_as_what_it_is(ask: Ask, path: str, name: str, kind: str) -> None:
    response = ask(path)
    assert (response.status, response.text, response.headers["Content-Type"]) == (200, name, kind)


@pytest.mark.parametrize("path", ["/some/path/", "/some/path/absent.html"])
def test_every_answer_carries_the_policy(ask: Ask, path: str) -> None:
    headers = ask(path).headers
    assert headers["Content-Security-Policy"] == CSP
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/index.html",
        "/some/pathindex.html",
        "/some/path/absent.html",
        "/some/path/../secret.txt",
        "/some/path/../../secret.txt",
        "/some/path/%2e%2e/secret.txt",
        "/some/path/study/..%2f..%2fsecret.txt",
        "/some/path/..\\secret.txt",
        "/some/path/link.txt",
        "/some/path/.toolkit-site",
        "/some/path/empty/",
        "/some/path/index.html/",
        "/some/path//index.html",
        "//example.org/x",
        "/some/path/" + "x" * 5000,
        "/some/path/a%00b",
    ],
)
def test_nothing_else_is_served(ask: Ask, path: str) -> None:
    assert ask(path).status == 404


@pytest.mark.parametrize(
    ("path", "target"), [("/some/path", "/some/path/"), ("/some/path/study", "/some/path/study/")]
)
def test_a_folder_is_asked_for_with_a_slash(ask: Ask, path: str, target: str) -> None:
    response = ask(path)
    assert (response.status, response.headers["Location"]) == (301, target)


def test_the_head_alone_is_sent_where_it_is_asked_for_on_this_machine_alone(site: Path) -> None:
    with served(site) as server:
        assert server.server_address[0] == "127.0.0.1"
        with socket.create_connection(server.server_address, timeout=10) as connection:
            connection.sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            head = b"".join(iter(lambda: connection.recv(4096), b""))
    assert b"Content-Length: 10\r\n" in head
    assert head.endswith(b"\r\n\r\n")


def test_a_path_may_be_in_another_script_and_a_port_that_is_taken_is_said_to_be(site: Path) -> None:
    with served(site, "/日本/") as first:
        asked = answer(first, "/%E6%97%A5%E6%9C%AC")
        assert asked.headers["Location"] == "/%E6%97%A5%E6%9C%AC/"
        with pytest.raises(UsageError, match=f"port {first.server_port} cannot be had"):
            SiteServer(site, first.server_port)


def test_a_folder_without_a_site_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="no site is here"):
        SiteServer(tmp_path, 0)


@pytest.mark.parametrize("base", ["/a b/", "/../", "/a?b/", "/a%20b/", "\\a"])
def test_a_path_that_is_none_is_refused(site: Path, base: str) -> None:
    with pytest.raises(UsageError, match="no path"):
        SiteServer(site, 0, base)
