"""The commands that take a log of any program to a decided study with a site; only the rules are edited."""

import time
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import CHECKOUT, run

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
        ("registers", "import", "mine", log),
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
