"""Streams as they come: full, closed, narrow, or read by a terminal that a file should not control."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, run
from toolkit.cli import output, power
from toolkit.cli.output import visible
from toolkit.registers.study import open_study
from toolkit.verification.steps import number_of_steps

TOOLKIT = f"{sys.executable} -m toolkit"
GOLDEN = CHECKOUT / "tests/golden/episode.json"
FULL = Path("/dev/full")
MATHS = "registers schema luck_share"


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (f"{TOOLKIT} draw 0 grader --json > /dev/full", 3),
        (f"{TOOLKIT} registers schema > /dev/full", 3),
        (f"{TOOLKIT} draw --json > /dev/full", 2),
        (f"{TOOLKIT} draw --json 2> /dev/full | grep -q exit_code && exit 2", 2),
    ],
)
def test_a_full_disk_leaves_the_exit_code_right(command: str, code: int) -> None:
    done = shell(command)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert (b"the system refused" in done.stderr) == (code == 3)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (f"{TOOLKIT} draw 0 grader --json >&-", 0),
        (f"{TOOLKIT} draw 0 grader 2>&-", 0),
        (f"{TOOLKIT} draw x grader --json >&- 2>&-", 2),
        (f"{TOOLKIT} episode play --by-hand <&-", 0),
        (f"{TOOLKIT} episode replay - <&-", 3),
        (f"{TOOLKIT} backoffice mcp --task validation:0 <&- >&-", 0),
    ],
)
def test_a_closed_stream_is_no_traceback(command: str, code: int) -> None:
    done = shell(command)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_narrow_stdout_shows_the_episode_all_the_same(encoding: str) -> None:
    command = f"{TOOLKIT} episode replay {GOLDEN}"
    done = shell(command, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert done.returncode == 0
    assert b"true success yes" in done.stdout
    document = shell(f"{TOOLKIT} {MATHS} --json", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert json.loads(document.stdout.decode(encoding)) == run(*MATHS.split(), "--json").json()


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
def test_bytes_that_are_no_text_are_a_line_that_is_no_call(encoding: str) -> None:
    done = subprocess.run(
        [*TOOLKIT.split(), "episode", "play", "--by-hand", "--json"],
        input=b"\xff\n",
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
        cwd=CHECKOUT,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["calls_charged"] == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, é ⚡", "plain, é ⚡"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\nb", "a\\nb"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_would_do_more_than_appear_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_recorded_episode_cannot_control_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\ntrue success yes\u202e"
    from toolkit.lab.episodes.desk import Desk
    from toolkit.lab.episodes.document import episode_document
    from toolkit.lab.episodes.episode import close
    from toolkit.lab.tasks.pools import load_task
    from toolkit.noise.regimes import REGIMES

    desk = Desk(load_task("test:7"), REGIMES["clean"], 0, traced=True)
    desk.call("get_order", {"order_id": hostile})
    desk.call(hostile, {hostile: hostile})
    file = tmp_path / "episode.json"
    file.write_text(json.dumps(episode_document(close(desk))), encoding="utf-8")
    for more in ((), ("--full",)):
        done = run("episode", "replay", file, *more)
        assert done.code == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(done.out)
        assert not any(line.startswith("true success yes") for line in done.out.splitlines())


def test_an_error_cannot_control_the_terminal() -> None:
    done = run("episode", "play", "--regime", "\x1b[2Jwindy").refused(2)
    assert "\x1b" not in done.err


Told = list[tuple[int, int, str]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """What a terminal was told: steps done, all steps, and the one being worked on."""
    heard: Told = []

    @contextlib.contextmanager
    def counted(_: str) -> Iterator[Any]:
        yield lambda *step: heard.append(step), lambda _: None

    for module in (output, power):
        monkeypatch.setattr(module, "counted", counted)
    return heard


@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("power H2a --seeds 3 --seeds 5 --effect 0 --effect 0.03 --simulations 10", 3),
        pytest.param("registers audit --study embedded --sample 2", None, marks=pytest.mark.slow),
        ("probe report --study embedded --trajectory c0-clean-s0 --check", None),
        ("verify-prereg embedded tiny-lm", 1),
        pytest.param("world check bfcl --changes 3", None, marks=pytest.mark.slow),
    ],
)
def test_steps_are_counted_to_their_total(toolkit, told, command, last) -> None:
    assert toolkit(*command.split()).code == 0
    done, totals = [step for step, _, _ in told], {total for _, total, _ in told[1:]}
    (total,) = totals
    assert total > 1
    assert done == sorted(done)
    assert done[-1] == (total - 1 if last is None else last) or (done[-1] == total and "audit" in command)


@pytest.mark.parametrize("name", ["published", "task-pools", "tiny-lm"])
def test_a_study_is_verified_in_as_many_steps_as_are_announced(toolkit, told, home, name) -> None:
    assert toolkit("registers", "verify", "--study", name).code == 0
    number = number_of_steps(open_study(home.study_folder(name)))
    assert [(step, total) for step, total, _ in told] == [(step, number) for step in range(number)]
