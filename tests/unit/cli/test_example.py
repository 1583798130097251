"""Worked examples, from a log to decided rules and a site, by the commands of their READMEs.

The one with logs of Inspect is played where Inspect is: `tests/inspect/test_example.py`.
"""

import json
import shlex
import shutil
import sys
from pathlib import Path
from time import monotonic

import polars as pl
import pytest

from tests import own_study
from tests.architecture.test_house_rules import rooms_and_core
from tests.own_study import EXAMPLES, LOGS, asked, decided, documented, frozen, readme, shell
from tests.unit.stack import require_trainer
from toolkit.places import HOME_VARIABLE

PLAYED = ("benchmark", "training-curve")
LARGEST_LOG = 150_000  # bytes of one file of a log


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies of the examples, in which every documented command was given but the installation."""
    begun = monotonic()
    scratch = tmp_path_factory.mktemp("examples")
    made = {name: own_study.played(name, scratch) for name in PLAYED}
    assert monotonic() - begun < 2 * 60 * len(made)
    return made


@pytest.fixture(params=PLAYED)
def folder(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Path:
    return folders[request.param]


@pytest.mark.parametrize("name", LOGS)
def test_an_example_has_as_few_commands_as_it_says(name: str) -> None:
    install, *commands = documented(name)
    assert install.startswith("pip install 'paired-rollouts-toolkit[")
    assert len(commands) == 8
    text = " ".join((EXAMPLES / "README.md").read_text(encoding="utf-8").split())
    assert "each in nine commands, the first of which installs and eight of which work" in text


@pytest.mark.parametrize("name", LOGS)
def test_logs_are_small_and_say_no_machine(name: str) -> None:
    logs = [path for part in ("pilot", LOGS[name]) for path in (EXAMPLES / name / part).rglob("*.*")]
    assert all(path.stat().st_size < LARGEST_LOG for path in logs if path.is_file())
    for path in (EXAMPLES / name).rglob("results_*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["pretty_env_info"] == ""


@pytest.mark.parametrize("name", LOGS)
def test_a_registration_can_be_frozen(toolkit, name: str, tmp_path: Path, monkeypatch) -> None:
    made = tmp_path / "prereg" / name
    made.mkdir(parents=True)
    for file in ("rules.toml", "protocol.md"):
        shutil.copy(EXAMPLES / name / "registered" / "prereg" / name / file, made)
    (tmp_path / "registers").mkdir()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    done = toolkit("freeze", name, "--dry-run")
    if name == "training-curve":  # frozen when a missing score could still count as the lowest
        done.refused(4, "a missing score is not zero")
    else:
        assert done.code == 0, done.err


@pytest.mark.parametrize("name", PLAYED)
def test_what_was_frozen_has_the_mapping_that_a_pilot_gives(toolkit, name, tmp_path, monkeypatch) -> None:
    shutil.copytree(EXAMPLES / name, tmp_path / name)
    command = next(line for line in documented(name) if line.startswith("toolkit new-study"))
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.delenv(HOME_VARIABLE)
    done = toolkit(*shlex.split(command)[1:])
    assert done.code == 0, done.err
    written, kept = (
        (tmp_path / name / base / "mappings" / f"{name}.toml").read_bytes() for base in (".", "registered")
    )
    assert written == kept


@pytest.mark.slow
def test_verdicts_are_as_the_readmes_say(folder: Path) -> None:
    h1 = {"benchmark": "miss", "training-curve": "pass"}[folder.name]
    own_study.check_verdicts(folder, {"H1": h1, "P1": "met"})


@pytest.mark.slow
@pytest.mark.parametrize("command", ["decide", "verify-prereg", "registers verify"])
def test_what_was_played_elsewhere_loads_no_other_room(folder: Path, command: str) -> None:
    rooms, _ = rooms_and_core(folder, *command.split(), *(["H1"] if command == "decide" else []))
    assert rooms == []


@pytest.mark.slow
def test_runs_came_after_the_freeze(folder: Path) -> None:
    runs, in_words = {"benchmark": (2, "two"), "training-curve": (6, "six")}[folder.name]
    own_study.check_chronology(folder, runs, in_words)


@pytest.mark.slow
def test_the_site_shows_every_rule(folder: Path) -> None:
    own_study.check_site(folder)


@pytest.mark.slow
def test_a_study_whose_launches_nobody_says_is_decided_and_stands_incomplete(tmp_path: Path) -> None:
    folder = frozen("training-curve", tmp_path)
    mapping = folder / "mappings" / "training-curve.toml"
    text = mapping.read_text(encoding="utf-8")
    column = 'launched_at = "config.run_name"\n'
    assert column in text
    mapping.write_text(text.replace(column, ""), encoding="utf-8")
    command = "toolkit registers import training-curve runs --replace 'the launches are said'"
    assert shell(folder, command.partition(" --replace")[0]).returncode == 0
    done = shell(folder, "toolkit verify-prereg training-curve --json")
    assert (done.returncode, json.loads(done.stdout)[0]["verdict"]) == (3, "incomplete")
    assert decided(folder)["H1"]["registration"]["standing"] == "incomplete"
    assert "the standing is *incomplete*" in readme("training-curve")
    constant = 'launched_at = "2026-11-25T03:54:50+00:00"\n'
    assert constant.strip() in readme("training-curve")
    said = text.replace(column, "").replace("[constants]\n", f"[constants]\n{constant}")
    mapping.write_text(said, encoding="utf-8")
    assert shell(folder, command).returncode == 0
    (verified,) = asked(folder, "verify-prereg training-curve")
    assert verified["chronology"]["verdict"] == "runs_after_freeze"


@pytest.mark.slow
def test_a_freeze_after_the_runs_is_noticed(tmp_path: Path) -> None:
    folder = frozen("benchmark", tmp_path)
    made = folder / "prereg" / "benchmark"
    for left in ("FROZEN.sha256", "LATER.chain", "record.toml", "trust.toml"):
        (made / left).unlink()
    shutil.rmtree(made / "evidence")
    assert shell(folder, "toolkit freeze benchmark --demonstration").returncode == 0
    assert shell(folder, "toolkit registers import benchmark logs").returncode == 0
    done = shell(folder, "toolkit verify-prereg benchmark --json")
    assert done.returncode == 1
    (verified,) = json.loads(done.stdout)
    assert verified["verdict"] == "not_verified"
    assert verified["chronology"]["verdict"] != "runs_after_freeze"


@pytest.mark.slow
def test_the_same_log_gives_the_same_registers(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = folders["benchmark"]
    assert shell(folder, "toolkit registers import benchmark logs --check").returncode == 0
    shutil.copytree(folder / "logs", folder / "others")
    for samples in (folder / "others").rglob("samples_*.jsonl"):
        text = samples.read_text(encoding="utf-8")
        samples.write_text(text.replace('"acc": 0.0', '"acc": 1.0', 1), encoding="utf-8")
    assert shell(folder, "toolkit registers import benchmark others --check").returncode == 1


@pytest.mark.slow
def test_registers_carry_the_registration_that_decided_them(folder: Path) -> None:
    carried = folder / "registers" / folder.name / "prereg" / folder.name
    for file in ("rules.toml", "protocol.md", "FROZEN.sha256", "LATER.chain", "record.toml"):
        kept = EXAMPLES / folder.name / "registered" / "prereg" / folder.name / file
        assert (carried / file).read_bytes() == kept.read_bytes()


@pytest.mark.slow
def test_the_script_of_the_curve_writes_such_a_log(tmp_path: Path) -> None:
    require_trainer()
    script = EXAMPLES / "training-curve" / "run.py"
    done = shell(tmp_path, f'"{sys.executable}" "{script}" runs 0')
    assert done.returncode == 0, done.stderr
    kept = EXAMPLES / "training-curve" / "runs"
    for path in kept.glob("*-s0/completions/*.parquet"):
        written = pl.read_parquet(tmp_path / "runs" / path.relative_to(kept))
        assert written.schema == pl.read_parquet(path).schema
        assert written.height == 32
    read = asked(tmp_path, "new-study mine --table runs --launched config.run_name --into .")
    assert (read["columns"]["arm"], read["columns"]["launched_at"]) == ("run.stem", "config.run_name")
