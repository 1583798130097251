"""A Hub, a mirror or a repository that means harm, and a cache that somebody changed: nothing is believed."""

import errno
import itertools
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run, snapshot
from tests.hub import server
from tests.hub.conftest import NAME, RUNS, SHA, TOKEN, damage, expect, meet, name_anew, pull, put
from tests.hub.server import FixtureHub, Handler
from toolkit.errors import DamagedError
from toolkit.files import write_bytes
from toolkit.registers.hub import transfer as pulling
from toolkit.registers.hub.transfer import check_held
from toolkit.registers.study import open_study, verify_study

MANIFEST = "MANIFEST.json"
CARD = "README.md"


def study_here(tmp_path: Path) -> list[Path]:
    """Return what was moved into the place of a study."""
    return list((tmp_path / "hf").rglob("studies/*"))


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/passwd", "a\\x", "a//x", "./a", "a.../x", "out", "folder/a"]
)
def test_a_path_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    for folder in ("in", "elsewhere", "in/a..."):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").write_text("x")
        (tmp_path / folder / "x").write_text("x")
    (tmp_path / "x").write_text("x")
    (tmp_path / "in" / "out").symlink_to(tmp_path / "x")
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "elsewhere")
    assert check_held(tmp_path / "in", "a").read_text() == "x"
    with pytest.raises(DamagedError, match="leads out of its folder"):
        check_held(tmp_path / "in", name)


def test_an_etag_is_no_path(hub: FixtureHub, commit: str, tmp_path: Path) -> None:
    hub.fail("leads_out", "resolve")
    expect(pull(), 3, "MANIFEST.json")
    assert not list(tmp_path.rglob("*outside*"))
    assert not study_here(tmp_path)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"runs/more.parquet": bytes(5_000_000)}, ("runs/more.parquet is not in the manifest",)),
        ({"../outside.parquet": bytes(9)}, ("../outside.parquet is not in the manifest",)),
        ({RUNS: bytes(5_000_000)}, (f"{RUNS} is not the file that the manifest names", "5000000 bytes")),
        ({MANIFEST: bytes(70_000_000)}, ("MANIFEST.json on the Hub is too long", "70000000 bytes")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_the_manifest_does_not_name_is_refused_and_not_downloaded(
    hub: FixtureHub, commit: str, tmp_path: Path, files: dict[str, bytes], words: tuple[str, ...]
) -> None:
    hub.store.commit(NAME, files)
    expect(pull(""), 4, *words, "do not use it")
    assert hub.asked("GET .*/resolve/.*parquet") == []
    assert hub.sent < 200_000
    assert not study_here(tmp_path)
    assert not list(tmp_path.rglob("outside*"))


def test_a_listing_without_end_is_refused(hub, commit, monkeypatch) -> None:
    monkeypatch.setattr("toolkit.registers.hub.client.MOST_FILES", 3)
    expect(pull(), 4, "the Hub lists files without end")


@pytest.mark.parametrize("where", [RUNS, MANIFEST])
def test_a_download_that_goes_on_is_cut(hub: FixtureHub, commit: str, tmp_path: Path, where: str) -> None:
    hub.fail("endless_body", f"GET .*{where}")
    expect(pull(), 4, "a download has no end")
    assert not study_here(tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 1_000_000
    hub.mend()
    assert pull().code == 0


@pytest.mark.parametrize("kind", ["silent", "dripping"])
@pytest.mark.parametrize("where", ["GET .*/refs", MANIFEST, f"GET .*{RUNS}"])
def test_a_hub_that_keeps_one_waiting_is_given_up(hub, commit, monkeypatch, kind, where) -> None:
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "0.1")
    monkeypatch.setattr("toolkit.registers.hub.client.SLOWEST", 10**6)
    hub.fail(kind, where)
    begin = time.monotonic()
    done = expect(pull("@v1.0.0", "--json"), 3)
    assert time.monotonic() - begin < 3
    assert "HF_HUB_DOWNLOAD_TIMEOUT" in done.json()["error"]["expected"]


@pytest.mark.parametrize("name", [RUNS, CARD, MANIFEST])
def test_wrong_bytes_get_no_place(hub: FixtureHub, commit: str, tmp_path: Path, name: str) -> None:
    hub.fail("wrong_bytes", f"GET .*/resolve/.*{name}")
    done = expect(pull(), 4, f"{name} is not the file", "do not use it")
    assert done.out == ""
    assert not study_here(tmp_path)
    hub.mend()
    hub.requests.clear()
    assert pull().code == 0
    assert len(hub.asked(f"GET .*/resolve/.*{name}")) == 1


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        (CARD, b"---", b"--", "README.md is not the file that the manifest names"),
        (CARD, b"\n", b"\r\n", "its line ends were converted from LF to CRLF"),
        (MANIFEST, b'"evidence": "rows"', b'"evidence": "summary"', "was changed after it was written"),
    ],
)
def test_a_repository_that_is_damaged_itself_is_refused(small, hub, commit, name, old, new, problem) -> None:
    hub.store.commit(NAME, {name: (small / name).read_bytes().replace(old, new)})
    expect(pull(""), 4, problem)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, RUNS) for kind in ("missing_file", "server_error", "truncated_body", "cut_body", "hung_up")),
        ("hung_up", MANIFEST),
    ],
)
def test_a_download_that_breaks_off_is_resumed_by_the_same_command(
    small: Path, hub: FixtureHub, commit: str, kind: str, name: str, tmp_path: Path
) -> None:
    hub.fail(kind, f"GET .*/resolve/.*{name}")
    done = pull("@v1.0.0", "--json", "--into", tmp_path / "copy")
    assert done.code == 3
    assert list(done.json()) == ["error"]
    assert not (tmp_path / "copy").exists()
    assert not study_here(tmp_path)
    hub.mend()
    hub.requests.clear()
    assert pull("@v1.0.0", "--into", tmp_path / "copy").code == 0
    assert snapshot(tmp_path / "copy") == snapshot(small)
    assert len(hub.asked(f"GET .*/resolve/.*{MANIFEST}")) == (name == MANIFEST)  # what was whole was kept


def test_a_file_that_the_commit_lacks_is_said(hub: FixtureHub, commit: str) -> None:
    hub.store.commit(NAME, {}, (RUNS,))
    expect(pull(""), 3, RUNS, "the Hub does not have a file")


def test_a_full_disk_is_said(hub: FixtureHub, commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("huggingface_hub.snapshot_download", full)
        expect(pull(), 3, "the disk is full", "HF_HOME")
    monkeypatch.setattr(pulling.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))  # noqa: SLF001
    expect(pull(), 3, "the disk has no room for the study", "0 bytes free")


# What is in the place of a file of a pulled study.
DEFECTS: dict[str, Callable[[Path, Path], object]] = {
    "nothing": lambda *_: None,
    "another file": lambda path, _: path.write_bytes(b"something else"),
    "a link to the right bytes elsewhere": lambda path, outside: path.symlink_to(outside),
    "a link to its folder": lambda path, _: path.symlink_to(".."),
    "a link to itself": lambda path, _: path.symlink_to(path.name),
    "a folder": lambda path, _: (path / "deep").mkdir(parents=True),
}


@pytest.mark.parametrize(
    ("name", "defect"),
    [*((RUNS, defect) for defect in DEFECTS), (MANIFEST, "nothing"), (MANIFEST, "a link to itself")],
)
def test_a_damaged_study_is_refused_offline_and_healed_online(
    small: Path, hub: FixtureHub, warm: Path, tmp_path: Path, name: str, defect: str
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_bytes((small / name).read_bytes())
    (warm / name).unlink()
    DEFECTS[defect](warm / name, outside)
    assert pull("@v1.0.0", "--offline").code in {3, 4}
    assert pull().code == 0
    assert snapshot(warm) == snapshot(small)
    assert not any(path.is_symlink() for path in warm.rglob("*"))
    assert pull("@v1.0.0", "--offline").code == 0
    assert outside.read_bytes() == (small / name).read_bytes()
    assert len(hub.asked("GET .*/resolve/")) == 1


def test_what_is_in_a_folders_place_is_taken_out(small, hub, warm, tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for folder, put_there in (
        (warm / "runs", lambda path: path.write_text("x")),
        (warm / "runs", lambda path: path.symlink_to(tmp_path / "mine")),
        (warm, lambda path: path.write_text("x")),
        (warm, lambda path: path.symlink_to(tmp_path / "mine")),
    ):
        shutil.rmtree(folder)
        put_there(folder)
        assert pull().code == 0
        assert snapshot(warm) == snapshot(small)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_stray_file_is_refused_offline_and_removed_online(hub: FixtureHub, warm: Path) -> None:
    (warm / "runs" / "more rows.parquet").write_bytes(b"x")
    expect(pull("@v1.0.0", "--offline"), 4, "more rows.parquet is not in the manifest")
    assert pull().code == 0
    assert not (warm / "runs" / "more rows.parquet").exists()


def test_a_cache_that_was_forged_to_fit_itself_is_healed(small: Path, hub: FixtureHub, warm: Path) -> None:
    write_bytes(warm / CARD, (warm / CARD).read_bytes() + b"\nEverything passed.\n")
    name_anew(warm, CARD)
    assert verify_study(open_study(warm))
    expect(pull(), 0, "MANIFEST.json is not the file of the commit, in the cache: it is downloaded anew")
    assert snapshot(warm) == snapshot(small)


def test_a_damaged_study_is_never_decided_on_offline(hub, warm, monkeypatch) -> None:
    damage(warm / RUNS)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = run("decide", "--all", "--study", f"{NAME}@v1.0.0", "--json")
    assert done.code == 4
    assert list(done.json()) == ["error"]
    assert hub.requests == []


def test_a_private_study_needs_a_token_which_is_never_printed(small, tmp_path, monkeypatch) -> None:
    with FixtureHub(token=TOKEN) as hub:
        meet(hub, tmp_path, monkeypatch)
        commit = put(hub, small, tag="v1.0.0")
        hub.store.repository(NAME).private = True
        hub.fail("server_error", f"GET .*{RUNS}", 1)
        for code in (3, 0):
            assert TOKEN not in expect(pull(), code).err + pull("@v2").err
        monkeypatch.setenv("HF_TOKEN", "")
        for revision in ("@v1.0.0", f"@{commit}"):
            expect(pull(revision), 3, "log in", "--offline")
        shutil.rmtree(tmp_path / "hf")
        for token in ("", "hf_another"):
            monkeypatch.setenv("HF_TOKEN", token)
            done = expect(pull(), 3, "or it is private", "HF_TOKEN")
            assert not token or token not in done.err


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


@pytest.mark.parametrize(
    ("command", "answer"),
    [*(("pull", answer) for answer in ANSWERS), *itertools.product(COMMANDS, ("null", "no commit"))],
)
def test_garbage_is_said_and_nothing_is_taken_from_it(hub, monkeypatch, answer, command) -> None:
    status, headers, body = ANSWERS[answer]

    def serve(self: Handler) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._send(status, body, headers)

    for method in ("do_GET", "do_HEAD", "do_POST", "do_PUT"):
        monkeypatch.setattr(Handler, method, serve)
    monkeypatch.setattr(Handler, "_hits", lambda *_: False)
    done = run(*COMMANDS[command], "--json")
    assert done.code == 3
    assert list(done.json()) == ["error"]
    assert done.json()["error"]["remedy"]


def test_an_address_that_is_none_is_said(hub: FixtureHub, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("http://[bad", "ftp://127.0.0.1", "nothing", "http://127.0.0.1:99999"):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert pull().code == 3
    for command in COMMANDS.values():
        assert run(*command).code == 3


def test_a_tag_whose_commit_is_none_is_not_believed(hub, small, commit, monkeypatch) -> None:
    answer = Handler.info

    def odd(self: Handler, repo: object, revision: str = "main") -> None:
        if revision == "v1.0.0":
            self._json({"id": NAME, "sha": "../x"})
        else:
            answer(self, repo, revision)

    routes = [(method, path, odd if does is answer else does) for method, path, does in server.ROUTES]
    monkeypatch.setattr(server, "ROUTES", tuple(routes))
    expect(run("registers", "push", small, NAME, "--tag", "v1.0.0"), 3, "40 hexadecimal digits")
