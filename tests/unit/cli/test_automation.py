"""What other people's pipelines call: the GitHub Action, and the hooks of pre-commit, run as these do."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import CHECKOUT, Result
from toolkit.cli.unchanged import main

ACTION = yaml.safe_load((CHECKOUT / "action.yml").read_text(encoding="utf-8"))
HOOKS = {
    hook["id"]: hook
    for hook in yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
}
EXAMPLES = CHECKOUT / "examples" / "automation"
STUDY = "tiny-lm"
FROZEN, CHAIN = "FROZEN.sha256", "LATER.chain"

Run = Callable[..., subprocess.CompletedProcess[str]]


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def _repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of somebody else: a frozen registration with amendments, a draft, and a study."""
    parent = tmp_path_factory.mktemp("made")
    folder = parent / "theirs"
    for name in ("prereg/embedded", f"prereg/{STUDY}", "prereg/qwen3.5-2b", f"registers/{STUDY}"):
        shutil.copytree(CHECKOUT / name, folder / name)
    git(parent, "init", "-q", "theirs")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "all of it")
    return folder


@pytest.fixture
def repository(_repository: Path, tmp_path: Path) -> Path:
    return shutil.copytree(_repository, tmp_path / "theirs")


@pytest.fixture
def unchanged(repository, monkeypatch, capsys) -> Callable[[], Result]:
    """Return what the first hook runs, called in this process."""

    def check() -> Result:
        monkeypatch.chdir(repository)
        code = main()
        return Result(code, *capsys.readouterr())

    return check


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """Where an installed `toolkit` would lie, and the `python` beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, arguments in (("toolkit", " -m toolkit"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{arguments} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def environment(bin_folder: Path, **more: str) -> dict[str, str]:
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    left = {name: value for name, value in os.environ.items() if name != "TOOLKIT_HOME"}
    return {**left, "PATH": path, "PYTHONPATH": str(CHECKOUT), **more}


@pytest.fixture
def hook(repository: Path, bin_folder: Path) -> Run:
    """Run a hook as pre-commit does: its entry, in the root of the repository, without names of files."""

    def run(name: str) -> subprocess.CompletedProcess[str]:
        assert HOOKS[name]["pass_filenames"] is False
        return subprocess.run(
            shlex.split(HOOKS[name]["entry"]),
            cwd=repository,
            env=environment(bin_folder),
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_repository_as_it_was_frozen_is_unchanged(repository: Path, hook: Run) -> None:
    with (repository / "prereg/qwen3.5-2b/rules.toml").open("a") as draft:
        draft.write("# a draft may change\n")
    done = hook("registration-unchanged")
    assert (done.returncode, done.stdout) == (0, f"unchanged: embedded, {STUDY}\n")


def test_a_repository_without_registrations_is_unchanged(repository, unchanged) -> None:
    """And those that come with the package are not asked instead."""
    shutil.rmtree(repository / "prereg")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "none")
    assert unchanged().out == "unchanged: nothing is frozen here\n"


def _append(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes() + b"# more\n")

    return change


def _frozen_anew(folder: Path) -> None:
    """Edit a frozen file, and its hash."""
    before = (folder / FROZEN).read_bytes()
    _append("protocol.md")(folder)
    lines = [line.split(b"  ", 1)[1] for line in before.splitlines()]
    hashes = ((sha256((folder / name.decode()).read_bytes()).hexdigest().encode(), name) for name in lines)
    (folder / FROZEN).write_bytes(b"".join(b"%s  %s\n" % each for each in hashes))


def _cut(folder: Path) -> None:
    lines = (folder / CHAIN).read_bytes().splitlines(keepends=True)
    (folder / CHAIN).write_bytes(b"".join(lines[:-1]))


def _made_a_draft(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name not in {"protocol.md", "rules.toml"}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


EDITS: dict[str, tuple[Callable[[Path], None], str]] = {
    "rules edited": (_append("rules.toml"), "rules.toml was changed"),
    "protocol taken away": (lambda folder: (folder / "protocol.md").unlink(), "protocol.md cannot be read"),
    "an amendment edited": (_append("amendments/A1.toml"), "amendments/A1.toml"),
    "a file added": (lambda folder: (folder / "more.md").write_text("more"), "more.md"),
    "frozen anew": (_frozen_anew, "embedded/FROZEN.sha256"),
    "the end of the chain cut": (_cut, "embedded/LATER.chain"),
    "made a draft again": (_made_a_draft, "embedded/FROZEN.sha256, embedded/LATER.chain"),
    "taken away": (shutil.rmtree, "embedded/FROZEN.sha256, embedded/LATER.chain"),
    "everything taken away": (lambda folder: shutil.rmtree(folder.parent), "embedded/FROZEN.sha256"),
}


@pytest.mark.parametrize(("edit", "said"), EDITS.values(), ids=EDITS)
def test_a_frozen_registration_that_was_changed_is_refused(repository, unchanged, edit, said) -> None:
    edit(repository / "prereg" / "embedded")
    done = unchanged()
    assert done.code in {1, 3}
    assert done.err.startswith("error: ")
    assert said in done.err


def test_what_is_added_after_a_freeze_is_no_change_of_it(repository, unchanged) -> None:
    folder = repository / "prereg" / "embedded"
    whole = (folder / CHAIN).read_bytes()
    _cut(folder)
    git(repository, "commit", "-qam", "before the last entry")
    (folder / CHAIN).write_bytes(whole)
    assert unchanged().code == 0


@pytest.mark.slow
def test_registers_that_are_whole_are_decided(repository: Path, hook: Run) -> None:
    done = hook("registers-decided")
    assert (done.returncode, done.stdout.split(",")[0]) == (0, f"{STUDY}: verified")


def test_a_register_that_was_changed_is_refused(repository: Path, hook: Run) -> None:
    path = next((repository / "registers" / STUDY / "decisions").glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert hook("registers-decided").returncode in {1, 4}


def test_without_registers_nothing_is_decided(repository: Path, hook: Run) -> None:
    shutil.rmtree(repository / "registers")
    assert hook("registers-decided").returncode == 0


def test_the_hooks_are_as_pre_commit_reads_them() -> None:
    for hook in HOOKS.values():
        assert {"id", "name", "entry", "language", "description"} <= hook.keys()
        assert hook["language"] == "python"
        # pre-commit matches no name of a file that was taken away.
        assert hook["always_run"] is True


@pytest.fixture
def act(repository: Path, bin_folder: Path, tmp_path: Path) -> Run:
    """Run the shell steps of the action as a runner does, one after the other."""

    def run(**inputs: str) -> subprocess.CompletedProcess[str]:
        given = {name: field["default"] for name, field in ACTION["inputs"].items()} | {
            name.replace("_", "-"): value for name, value in inputs.items()
        }
        assert given.keys() == ACTION["inputs"].keys()
        done = None
        for step in (step for step in ACTION["runs"]["steps"] if "run" in step):
            variables = {
                name: re.sub(r"\$\{\{ inputs\.(\S+) \}\}", lambda found: given[found[1]], value)
                for name, value in step["env"].items()
            }
            assert "${{" not in step["run"], "an input in a script is run as a part of it"
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=repository,
                env=environment(
                    bin_folder,
                    **variables,
                    GITHUB_WORKSPACE=str(repository),
                    GITHUB_ACTION_PATH=str(CHECKOUT),
                    GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"),
                    GITHUB_OUTPUT=str(tmp_path / "output"),
                    PIP_LOG=str(tmp_path / "pip"),
                ),
                capture_output=True,
                text=True,
                check=False,
            )
        assert done is not None
        return done

    script = bin_folder / "python"
    text = script.read_text()
    # What the package is installed from is written down; it is there already.
    script.write_text(text.replace("exec", 'if [ "$2" = pip ]; then echo "$@" >> "$PIP_LOG"; exit; fi\nexec'))
    return run


def summary(tmp_path: Path) -> str:
    return (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_the_action_verifies_decides_and_shows_verdicts(act: Run, tmp_path: Path) -> None:
    done = act(study=STUDY, require="demonstration")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "::error" not in done.stdout
    assert f"| {STUDY} | verified | demonstration | 2026-" in summary(tmp_path)
    assert f"| {STUDY} | H2a | Learning under tool faults | ❌ miss | demonstration |" in summary(tmp_path)
    name, _, value = (tmp_path / "output").read_text(encoding="utf-8").strip().partition("=")
    assert name == "verdicts"
    assert {row["rule"]: row["verdict"] for row in json.loads(value)}["H2a"] == "miss"


def test_the_action_decides_the_rules_that_are_named_and_fails_on_a_miss(act: Run, tmp_path: Path) -> None:
    done = act(study=STUDY, rules="H2a gate2", fail_on_miss="true")
    assert done.returncode == 1
    assert f"::error title={STUDY}%2C H2a%3A miss::" in done.stdout
    assert "H2b" not in summary(tmp_path)


@pytest.mark.slow
def test_the_action_without_inputs_takes_all_that_is_in_the_repository(act: Run, tmp_path: Path) -> None:
    done = act()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^\| (\S+) \| verified", summary(tmp_path), re.MULTILINE) == ["embedded", STUDY]
    assert summary(tmp_path).count("| H2a |") == 1


@pytest.mark.slow
def test_the_action_asks_for_what_is_required(act: Run) -> None:
    done = act(study=STUDY, require="public")
    assert done.returncode == 1
    assert (
        "::error title=toolkit verify-prereg::registration tiny-lm stands on less than public" in done.stdout
    )


def test_the_action_verifies_a_registration_that_nothing_was_run_for(act, repository, tmp_path) -> None:
    shutil.rmtree(repository / "registers")
    done = act(registration="embedded")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verdicts" not in summary(tmp_path)


@pytest.mark.parametrize("edit", ["rules edited", "protocol taken away"])
def test_the_action_annotates_a_registration_that_was_changed(act: Run, repository: Path, edit: str) -> None:
    change, said = EDITS[edit]
    change(repository / "prereg" / "embedded")
    done = act(registration="embedded")
    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if line.startswith("::error")]
    assert line.startswith("::error title=embedded%3A ")
    assert said in line


def test_the_action_warns_of_a_draft(act: Run) -> None:
    done = act(registration="qwen3.5-2b")
    assert done.returncode == 0
    assert "::warning title=qwen3.5-2b%3A incomplete::" in done.stdout


def test_the_action_does_not_fall_back_on_what_came_with_the_package(act: Run, repository: Path) -> None:
    shutil.rmtree(repository / "prereg")
    done = act()
    assert done.returncode == 2
    assert "::error title=toolkit verify-prereg::TOOLKIT_HOME does not name a folder" in done.stdout


@pytest.mark.parametrize(
    ("version", "source"), [("", str(CHECKOUT)), ("0.1.0", "paired-rollouts-toolkit==0.1.0")]
)
def test_the_action_installs_itself_or_the_version_that_is_named(act, tmp_path, version, source) -> None:
    act(registration="qwen3.5-2b", version=version)
    assert (tmp_path / "pip").read_text().split()[-1] == source


def test_the_action_is_as_a_runner_reads_it() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert (
            re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) if "uses" in step else step["shell"] == "bash"
        )
        if "run" in step:
            subprocess.run(["bash", "-n", "-c", step["run"]], check=True)
    for field in ACTION["inputs"].values():
        assert isinstance(field["default"], str)
        assert field["description"].endswith(".")


def test_the_examples_name_inputs_and_hooks_that_there_are() -> None:
    workflow: Any = yaml.safe_load((EXAMPLES / "workflow.yml").read_text(encoding="utf-8"))
    [job] = workflow["jobs"].values()
    assert job["steps"][-1]["with"].keys() <= ACTION["inputs"].keys()
    config = yaml.safe_load((EXAMPLES / "pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [hook["id"] for hook in config["repos"][0]["hooks"]] == [*HOOKS]
