"""The built package carries the shipped study and decides it from anywhere."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, snapshot


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_package_registers_and_registration_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for name in (
        "toolkit/py.typed",
        "toolkit/documents/schemas/decide.json",
        "toolkit/website/templates/home.html",
        "toolkit/website/assets/style.css",
        "toolkit/website/assets/site.js",
        "toolkit/website/assets/charts.js",
        "toolkit/_shipped/prereg/paired-rollouts/rules.toml",
        "toolkit/_shipped/registers/published/MANIFEST.json",
        "toolkit/_shipped/cards/published.md",
    ):
        assert name in names
    assert not [name for name in names if name.startswith(("tests/", "toolkit/website/browser/"))]
    assert not [name for name in names if "node_modules" in name]


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_adopted_evidence_is_its_authors_and_is_shipped_with_nothing(tmp_path: Path, target: str) -> None:
    names = ("pyproject.toml", "README.md", "LICENSE", "toolkit/__init__.py", "cards/published.md")
    for name in (*names, "registers/published/MANIFEST.json", "prereg/paired-rollouts/rules.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, tmp_path / name)
    evidence = tmp_path / "prereg/paired-rollouts/evidence"
    evidence.mkdir()
    (evidence / "document").write_bytes(b"its authors' words")
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", "built"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (built,) = (tmp_path / "built").iterdir()
    shutil.unpack_archive(built, tmp_path / "unpacked", "zip" if target == "wheel" else "gztar")
    shipped = {path.name for path in (tmp_path / "unpacked").rglob("*") if path.is_file()}
    assert ("rules.toml" in shipped, "document" in shipped) == (True, False)


@pytest.mark.slow
def test_the_source_distribution_holds_the_browsers_code_and_nothing_that_npm_fetched(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        ".npmrc",
        "src/site.ts",
        "src/page.ts",
    ):
        assert f"toolkit/website/browser/{name}" in names
    assert not [name for name in names if "node_modules" in name]


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return what runs the package as it was installed, from an empty folder."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site-packages")  # noqa: S202 - a zip of our own making
    (tmp_path / "empty").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site-packages")}
    environment.pop("TOOLKIT_HOME", None)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "toolkit", *arguments]
        return subprocess.run(
            command, cwd=tmp_path / "empty", env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_an_installed_package_decides_from_an_empty_folder(
    installed: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert json.loads(installed("decide", "H2a", "--json").stdout)[0]["verdict"] == "miss"
    assert "_shipped" in installed("registers", "list", "--study", "published", "--json").stdout


@pytest.mark.slow
def test_an_installed_package_builds_the_site_and_leaves_itself_alone(
    installed: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    before = snapshot(tmp_path / "site-packages" / "toolkit" / "_shipped")
    assert installed("registers", "build", "published").returncode == 2
    assert installed("site", "build").returncode == 0
    assert (tmp_path / "empty" / "site" / "index.html").is_file()
    assert snapshot(tmp_path / "site-packages" / "toolkit" / "_shipped") == before
