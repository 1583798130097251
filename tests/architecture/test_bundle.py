"""The browser's code: what ships is what its sources give, and the lock names packages by hash alone."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

TOOLKIT = CHECKOUT / "toolkit"
SOURCES = TOOLKIT / "site" / "browser"
ROOMS = ("site", "site/exhibits")


def missing(what: str) -> None:
    """Fail where everything has to be there, and skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with both rooms' bundles, built in a copy: a checkout's own packages may be others."""
    if not shutil.which("node") or not shutil.which("npm"):
        missing("node and npm are needed to build the browser's code: apt-get install nodejs npm")
    folder = tmp_path_factory.mktemp("toolkit")
    for room in ROOMS:
        sources = Path(room) / "browser"
        shutil.copytree(TOOLKIT / sources, folder / sources, ignore=shutil.ignore_patterns("node_modules"))
    copy = folder / "site" / "browser"
    for step in (("ci", "--silent", "--no-audit", "--no-fund"), ("run", "--silent", "build")):
        done = subprocess.run(["npm", *step], cwd=copy, capture_output=True, text=True, check=False)
        if done.returncode and step[0] == "ci":
            missing(f"npm could not fetch what the browser's code is built with: {done.stderr}")
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def scripts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.js")}


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_the_bundles_are_what_their_sources_give(built: Path, room: str) -> None:
    new, shipped = scripts(built / room / "assets"), scripts(TOOLKIT / room / "assets")
    assert set(new) == set(shipped)
    stale = [name for name in new if new[name] != shipped[name]]
    assert stale == [], "npm ci && npm run build, in toolkit/site/browser"


def test_the_lock_names_every_package_by_its_hash_and_no_host() -> None:
    text = (SOURCES / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in text
    assert "registry" not in text
    packages = json.loads(text)["packages"]
    assert len(packages) > 10
    assert [name for name, package in packages.items() if name and "integrity" not in package] == []


def test_the_sources_ask_for_exact_versions() -> None:
    wanted = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert [name for name, version in wanted.items() if not version[0].isdigit()] == []
