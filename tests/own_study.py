"""The worked examples of `examples/own-study`: the commands, given in a copy, and what comes of it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conftest import CHECKOUT
from toolkit.places import HOME_VARIABLE

EXAMPLES = CHECKOUT / "examples" / "own-study"
INSTALL = "pip install "
LOGS = {"prompting": "logs", "benchmark": "logs", "training-curve": "runs"}


def readme(name: str) -> str:
    """Return the README of an example, on one line."""
    return " ".join((EXAMPLES / name / "README.md").read_text(encoding="utf-8").split())


def documented(name: str) -> list[str]:
    """Return the commands of an example's README, in order."""
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def played(name: str, scratch: Path) -> Path:
    """Return a copy of an example in which all commands of its README were given but the first, `pip`."""
    folder = scratch / name
    shutil.copytree(EXAMPLES / name, folder)
    install, *commands = documented(name)
    assert install.startswith(INSTALL)
    for command in commands:
        done = shell(folder, command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    return folder


def frozen(name: str, scratch: Path) -> Path:
    """Return a copy of an example with the registration that was frozen, and no registers."""
    folder = scratch / name
    shutil.copytree(EXAMPLES / name, folder)
    shutil.copytree(folder / "registered", folder, dirs_exist_ok=True)
    (folder / "registers").mkdir()
    return folder


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Give a command of a README in a folder; `toolkit` is the one under test."""
    programs = folder.parent / "programs"
    programs.mkdir(exist_ok=True)
    program = programs / "toolkit"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m toolkit "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != HOME_VARIABLE}
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = str(CHECKOUT)
    return subprocess.run(  # noqa: S602 - a README's commands are a shell's
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def asked(folder: Path, command: str) -> Any:
    """Return what a command of the toolkit answers in JSON."""
    done = shell(folder, f"toolkit {command} --json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def decided(folder: Path) -> dict[str, Any]:
    """Return the decisions of an example, by rule."""
    return {decision["rule"]: decision for decision in asked(folder, "decide --all")}


def counted(folder: Path, outcome: str = "successes") -> dict[tuple[str, int, int], tuple[int, float]]:
    """Return episodes and outcome of each evaluation in the registers, by arm, seed and step."""
    rows = asked(folder, 'sql "FROM evaluations"')
    return {(r["arm"], r["seed"], r["step"]): (r["episodes"], float(r[outcome])) for r in rows}


def check_verdicts(folder: Path, verdicts: Mapping[str, str]) -> None:
    """Check the verdicts of an example, and that its README and the one above say them."""
    found = {rule: decision["verdict"] for rule, decision in decided(folder).items()}
    assert found == dict(verdicts)
    said = {"pass": "passes", "miss": "is missed", "met": "is met", "missed": "is missed"}
    sentences = [f"{rule} {said[verdict]}" for rule, verdict in verdicts.items()]
    for sentence in sentences:
        assert f"{sentence}:" in readme(folder.name)
    (line,) = re.findall(
        rf"^\| \[{folder.name}\].*$", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert line.endswith(f"| {', '.join(sentences)} |")


def check_chronology(folder: Path, runs: int, in_words: str) -> None:
    """Check that all runs of an example came after its freeze, as its README says."""
    (verified,) = asked(folder, f"verify-prereg {folder.name}")
    assert (verified["verdict"], verified["standing"]) == ("verified", "demonstration")
    assert verified["chronology"]["verdict"] == "runs_after_freeze"
    assert verified["chronology"]["runs_after"] == runs
    assert f"finds {in_words} runs that came after the freeze" in readme(folder.name)


def check_site(folder: Path) -> None:
    """Check that an example's site has a page for each rule, with its title and a chart."""
    site = folder / "site"
    decisions = decided(folder)
    pages = {f"{rule}.html" for rule in decisions}
    assert {path.name for path in (site / folder.name).glob("*.html")} == {*pages, "index.html"}
    for rule, decision in decisions.items():
        page = (site / folder.name / f"{rule}.html").read_text(encoding="utf-8")
        assert decision["title"] in page
        assert "<svg" in page
