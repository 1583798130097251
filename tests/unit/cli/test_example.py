"""The worked example: from a table of its own to decided rules and a site, by the commands of its README."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from toolkit.places import HOME_VARIABLE

EXAMPLE = CHECKOUT / "examples" / "bandits"
INSTALL = "pip install "
POWER = "toolkit power H1 --study bandits --simulations 200"
TABLE = "registers import bandits episodes.csv"


def documented() -> list[str]:
    """Return the commands of the README, in order."""
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, in which every documented command was given but one, which takes minutes."""
    folder = tmp_path_factory.mktemp("example") / "bandits"
    shutil.copytree(EXAMPLE, folder)
    commands = [line for line in documented() if not line.startswith((INSTALL, POWER))]
    assert len(commands) == len(documented()) - 2
    for command in commands:
        done = shell(folder, command)
        assert done.returncode == 0, (command, done.stderr)
    return folder


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != HOME_VARIABLE}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return subprocess.run(  # noqa: S602 - a README's commands are a shell's
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def asked(folder: Path, command: str) -> object:
    done = shell(folder, f"toolkit {command} --json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_example_is_as_long_as_it_says() -> None:
    assert len(documented()) == 14
    assert "Fourteen commands" in (EXAMPLE / "README.md").read_text(encoding="utf-8")


def test_its_registration_can_be_frozen(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "registered", tmp_path, dirs_exist_ok=True)
    (tmp_path / "registers").mkdir()
    done = shell(tmp_path, "toolkit freeze bandits --dry-run")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_its_rules_are_decided_as_the_readme_says(played: Path) -> None:
    decisions = {decision["rule"]: decision for decision in asked(played, "decide --all")}
    assert {rule: decision["verdict"] for rule, decision in decisions.items()} == {
        "H1": "pass",
        "P1": "missed",
        "P2": "met",
    }
    assert round(decisions["H1"]["estimate"]["mean"], 3) == 0.088
    assert all(value > 0 for value in decisions["H1"]["estimate"]["by_seed"].values())
    assert round(decisions["P1"]["estimate"]["mean"], 2) == 0.75
    text = " ".join((EXAMPLE / "README.md").read_text(encoding="utf-8").split())
    assert "0.088 (AUC)" in text
    assert "solves 75% of the problems" in text


@pytest.mark.slow
def test_its_counts_are_those_of_its_table(played: Path) -> None:
    import polars as pl

    table = pl.read_csv(played / "episodes.csv")
    expected = {
        ("UCB1" if agent == "UCB1" else "epsilon_greedy", rng, at): (n, won)
        for agent, rng, at, n, won in table.group_by("agent", "rng", "iteration")
        .agg(pl.len(), pl.col("solved").sum())
        .iter_rows()
    }
    rows = asked(played, 'sql "FROM evaluations"')
    assert isinstance(rows, list)
    found = {(r["arm"], r["seed"], r["step"]): (r["episodes"], r["successes"]) for r in rows}
    assert found == expected


@pytest.mark.slow
def test_its_power_is_as_the_readme_says(played: Path) -> None:
    assert POWER in documented()
    power = asked(played, f"{POWER.removeprefix('toolkit ')} --effect 0.05 --seeds 5")
    assert isinstance(power, dict)
    found = {(r["effect"], r["seeds"]): r["pass_probability"] for r in power["results"]}
    assert 0.3 < found[0.05, 5] < 0.5


@pytest.mark.slow
def test_its_runs_came_after_its_freeze(played: Path) -> None:
    (verified,) = asked(played, "verify-prereg bandits")
    assert (verified["verdict"], verified["standing"]) == ("verified", "demonstration")
    assert verified["chronology"]["verdict"] == "runs_after_freeze"


@pytest.mark.slow
def test_its_site_shows_every_rule(played: Path) -> None:
    site = played / "site"
    assert {path.name for path in (site / "bandits").glob("*.html")} == {
        "H1.html",
        "P1.html",
        "P2.html",
        "index.html",
    }
    page = (site / "bandits" / "H1.html").read_text(encoding="utf-8")
    assert "UCB1 solves more problems than epsilon-greedy" in page
    assert "<svg" in page


@pytest.mark.slow
def test_the_same_table_gives_the_same_registers(played: Path) -> None:
    done = shell(played, f"toolkit {TABLE} --check")
    assert done.returncode == 0, done.stderr
    table = (played / "episodes.csv").read_text(encoding="utf-8")
    other = played / "other.csv"
    other.write_text(table.replace("False", "True", 1), encoding="utf-8")
    assert shell(played, f"toolkit {TABLE.replace('episodes', 'other')} --check").returncode == 1


@pytest.mark.slow
def test_registers_that_travel_alone_are_decided_by_the_registration_they_carry(
    played: Path, tmp_path: Path
) -> None:
    shutil.copytree(played / "registers" / "bandits", tmp_path / "arrived")
    for file in ("rules.toml", "protocol.md", "FROZEN.sha256", "LATER.chain", "record.toml"):
        carried = tmp_path / "arrived" / "prereg" / "bandits" / file
        assert carried.read_bytes() == (played / "prereg" / "bandits" / file).read_bytes()
