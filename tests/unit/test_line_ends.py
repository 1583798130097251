"""Line ends: Git leaves what is hashed alone; where it did not, the refusal says so and how to mend it."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import own_study
from tests.conftest import Toolkit
from toolkit.errors import DamagedError, VerificationError
from toolkit.line_ends import ATTRIBUTES, CAUSE, PROTECTED, is_converted_file, protect
from toolkit.places import HOME_VARIABLE
from toolkit.prereg.registration import load_registration
from toolkit.registers.study import open_study

STUDY = "training-curve"


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    command = ["git", *name, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a frozen registration and imported registers, committed."""
    folder = own_study.frozen(STUDY, tmp_path_factory.mktemp("project"))
    done = own_study.shell(folder, f"toolkit registers import {STUDY} {own_study.LOGS[STUDY]}")
    assert done.returncode == 0, done.stderr
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a study")
    return folder


def clone(project: Path, into: Path) -> Path:
    """Clone as Git for Windows does unless it is told otherwise."""
    git(project, "clone", "-q", "-c", "core.autocrlf=true", str(project), str(into))
    return into


def test_a_clone_with_converted_line_ends_elsewhere_verifies_and_decides(
    project: Path, tmp_path: Path, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (project / ATTRIBUTES).read_text("utf-8").splitlines()[1:] == list(PROTECTED)
    cloned = clone(project, tmp_path / "clone")
    assert b"\r\n" in (cloned / "README.md").read_bytes()
    monkeypatch.setenv(HOME_VARIABLE, str(cloned))
    assert toolkit("verify-prereg", STUDY).code == 0
    assert toolkit("decide", "--all", "--json").json() != []


def test_without_the_attributes_the_refusal_names_the_cause_and_its_remedy_helps(
    project: Path, tmp_path: Path, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = clone(project, tmp_path / "bare")
    (bare / ATTRIBUTES).unlink()
    git(bare, "commit", "-qam", "without attributes")
    cloned = clone(bare, tmp_path / "clone")
    monkeypatch.setenv(HOME_VARIABLE, str(cloned))
    for command in (("verify-prereg", STUDY), ("decide", "--all")):
        refused = toolkit(*command)
        assert refused.code == 1
        told = " ".join((refused.out + refused.err).split())
        assert "line ends were converted from LF to CRLF" in told
        assert "core.autocrlf false" in told
    protect(cloned)
    git(cloned, "config", "core.autocrlf", "false")
    git(cloned, "rm", "-r", "-q", "--cached", ".")
    git(cloned, "reset", "-q", "--hard")
    assert toolkit("verify-prereg", STUDY).code == 0


@pytest.mark.parametrize(
    "name", ["FROZEN.sha256", "LATER.chain", "protocol.md", "rules.toml", "record.toml", "trust.toml"]
)
def test_a_converted_file_of_a_registration_is_refused_for_that(project, tmp_path, name) -> None:
    path = shutil.copytree(project / "prereg" / STUDY, tmp_path / "prereg" / STUDY) / name
    content = path.read_bytes()
    for most in (1, -1):
        path.write_bytes(content.replace(b"\n", b"\r\n", most))
        with pytest.raises(VerificationError, match="line ends were converted"):
            load_registration(path.parent)
    path.write_bytes(path.read_bytes() + b"\r\n")
    with pytest.raises(VerificationError) as refused:
        load_registration(path.parent)
    assert CAUSE not in str(refused.value)


def test_a_converted_file_of_registers_is_refused_for_that(project: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(project / "registers" / STUDY, tmp_path / STUDY)
    manifest = json.loads((folder / "MANIFEST.json").read_text("utf-8"))
    name = next(name for name in manifest["files"] if name.endswith(".md"))
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content.replace(b"\n", b"\r\n"))
    with pytest.raises(DamagedError, match="line ends were converted"):
        open_study(folder).prove(name)
    (folder / name).write_bytes(content + b"\r\n")
    with pytest.raises(DamagedError, match="is not the file that the manifest names"):
        open_study(folder).prove(name)


@pytest.mark.parametrize("around", [2**20 - 2, 2**20 - 1, 2**20])
@pytest.mark.parametrize("end", [b"\n", b"\rx"])
def test_a_long_file_is_compared_across_the_ends_of_its_blocks(tmp_path, around, end) -> None:
    whole = b"a" * around + end + b"b" * 5 + b"\n\r"
    path = tmp_path / "long"
    path.write_bytes(whole.replace(b"\n", b"\r\n"))
    assert is_converted_file(path, hashlib.sha256(whole).hexdigest())
    assert not is_converted_file(path, hashlib.sha256(whole + b"c").hexdigest())
    path.write_bytes(whole.replace(b"\n", b""))
    assert not is_converted_file(path, hashlib.sha256(path.read_bytes()).hexdigest()), "nothing was converted"


def test_attributes_that_are_there_stay_and_are_added_to_once(tmp_path: Path) -> None:
    path = tmp_path / ATTRIBUTES
    path.write_bytes(b"m\xe9thode.md binary\n/prereg/** -text")
    assert protect(tmp_path)
    kept = path.read_bytes()
    assert kept.startswith(b"m\xe9thode.md binary\n/prereg/** -text\n")
    assert [kept.count(line.encode()) for line in PROTECTED] == [1] * len(PROTECTED)
    assert not protect(tmp_path)
    assert path.read_bytes() == kept
