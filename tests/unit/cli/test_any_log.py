"""The output of every program that is read becomes a registered, decided study with a site."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, run
from toolkit.places import HOME_VARIABLE

SOURCES = {
    "lm-evaluation-harness": ("lm_eval/models", "--arm", "model"),
    "Every Eval Ever": ("every_eval_ever/lm_eval",),
    "TRL": ("trl",),
    "toolkit.noise.trainers": ("pairing",),
    "verl": ("verl", "--success", "acc"),
    "datasets, saved": ("hub_dataset/saved",),
    "datasets, a repository": ("hub_dataset/repository",),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", SOURCES)
def test_a_log_becomes_a_decided_study_with_a_site(program, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = journey(tmp_path, *SOURCES[program])
    assert done.commands <= MOST_COMMANDS
    assert done.seconds < MOST_SECONDS
    assert set(done.verdicts) == {"H1"}
    assert done.verdicts["H1"] in {"pass", "miss"}
    assert (done.site / "mine" / "H1.html").is_file()


LOGS = CHECKOUT / "tests" / "fixtures" / "logs"
MOST_COMMANDS, MOST_SECONDS = 8, 120


@dataclass(frozen=True)
class Journey:
    """What came of a log."""

    commands: int  # that were given
    verdicts: dict[str, str]  # rule → verdict
    seconds: float  # how long they took
    site: Path  # the folder with the pages


def journey(project: Path, source: str, *options: str) -> Journey:
    """Take a log from the program that wrote it to a site, in an empty project."""
    began = time.monotonic()
    log = str(LOGS / source)
    commands = [
        ("new-study", "mine", "--table", log, *options, "--into", "."),
        ("freeze", "mine", "--demonstration"),
        ("registers", "import", "mine", log, "--replace", "the way is tried: pilot and log are one"),
        ("decide", "--all", "--json"),
        ("site", "build"),
    ]
    for command in commands:
        done = run(*command)
        # The logs are older than this freeze, and where they say when they were launched, it is noticed.
        was_late = command[0] == "decide" and "freeze before runs" in done.err
        assert done.code == int(was_late), (command, done.err or done.out)
        if command[0] == "new-study":
            _fill_in(project)
        if command[0] == "decide":
            verdicts = {decision["rule"]: decision["verdict"] for decision in done.json()}
    return Journey(len(commands), verdicts, time.monotonic() - began, project / "site")


def _fill_in(project: Path) -> None:
    for path in [*project.glob("prereg/mine/*"), *project.glob("cards/*.md")]:
        path.write_text(path.read_text(encoding="utf-8").replace("FILL IN", "said"), encoding="utf-8")
