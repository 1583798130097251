"""A Hub of one's own for every test, an environment that knows no other, and studies on it."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Result, run, snapshot
from tests.hub.server import FixtureHub
from tests.row_study import lay, run_ids, schedules, seal, tables
from toolkit.files import file_sha256, write_bytes
from toolkit.registers.manifest import FileEntry, read_manifest, write_manifest
from toolkit.structs import replace

PUBLISHED = CHECKOUT / "registers" / "published"
NAME = "group/study"
TOKEN = "hf_secret"  # noqa: S105 - of a Hub that lives as long as its test
RUNS = "runs/c2-paired-s000.parquet"
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FixtureHub]:
    with FixtureHub() as hub:
        meet(hub, tmp_path, monkeypatch)
        yield hub


def meet(hub: FixtureHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process meet a Hub, although the Hub's client read its environment when it was imported."""
    import huggingface_hub.constants as read

    for name, value in hub.environment(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(read, "HF_HUB_DISABLE_XET", hub.cas is None)
    monkeypatch.setattr(read, "HF_TOKEN_PATH", str(folder / "hf" / "token"))
    # The client waits between attempts, by seconds; there is nothing here to wait for.
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.01)))


def put(hub: FixtureHub, folder: Path, name: str = NAME, tag: str | None = None) -> str:
    """Put a folder on a Hub without any client, and return the commit."""
    if name not in hub.store.repositories:
        hub.store.create(name)
    commit = hub.store.commit(name, snapshot(folder))
    if tag:
        hub.store.tag(name, tag, commit.sha)
    return commit.sha


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small study of rows, only to be read."""
    return make_rows(tmp_path_factory.mktemp("small") / "study")


@pytest.fixture
def commit(hub: FixtureHub, small: Path) -> str:
    """Return the commit of the small study on the Hub, tagged v1.0.0."""
    return put(hub, small, tag="v1.0.0")


def expect(done: Result, code: int, *words: str) -> Result:
    """Check how a command ended, and what it said to people; return what it left behind."""
    assert done.code == code, done.err
    for text in words:
        assert text in done.err
    return done


def name_anew(folder: Path, *names: str) -> None:
    """Have the manifest of a study name files as they lie there now."""
    manifest = read_manifest(folder)
    entries = {name: FileEntry(file_sha256(folder / name), (folder / name).stat().st_size) for name in names}
    write_manifest(folder, replace(manifest, files={**manifest.files, **entries}))


def push(study: object, *arguments: object) -> Result:
    return run("registers", "push", study, NAME, *arguments)


def pull(revision: str = "@v1.0.0", *arguments: object) -> Result:
    return run("registers", "pull", f"{NAME}{revision}", *arguments)


@pytest.fixture(scope="session")
def pulled(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache as the first pull of the small study leaves it, only to be copied."""
    folder = tmp_path_factory.mktemp("pulled")
    with pytest.MonkeyPatch.context() as monkeypatch, FixtureHub() as hub:
        meet(hub, folder, monkeypatch)
        put(hub, small, tag="v1.0.0")
        expect(pull(), 0)
    return folder / "hf"


@pytest.fixture
def warm(hub: FixtureHub, commit: str, pulled: Path, tmp_path: Path) -> Path:
    """Return the cached folder of the small study, which was pulled by its tag."""
    shutil.copytree(pulled, tmp_path / "hf", symlinks=True)
    return cached(tmp_path, commit)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Return the folder of a small study of rows."""
    return make_rows(tmp_path / "rows")


def make_rows(folder: Path, *, runs: int = 1, schedules_too: bool = False) -> Path:
    """Make a small study of rows; with the table of schedules it has a file more, and no other differs."""
    parts = tables(run_ids(runs))
    seal(
        folder,
        lay(folder, {**parts, "schedules": [schedules(parts["episodes"])]} if schedules_too else parts),
    )
    return folder


def cached(tmp_path: Path, commit: str, name: str = NAME) -> Path:
    """Return the folder of a commit in the cache."""
    root = tmp_path / "hf" / "assets" / "paired-rollouts-toolkit"
    return root / name.replace("/", "--") / "studies" / commit


def damage(path: Path) -> None:
    """Change one byte of a file, wherever its name leads."""
    target = path.resolve()
    content = bytearray(target.read_bytes())
    content[len(content) // 2] ^= 1
    write_bytes(target, bytes(content))
