"""Drawing ahead: a second process draws what the first comes to last, and changes nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Self

import pytest

from toolkit.cli import drawing_ahead as module
from toolkit.cli.drawing_ahead import drawing_ahead
from toolkit.website.charts.drawing import drawings

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.places import Home


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was started, with an empty cache and two processors."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    commands: list[list[str]] = []

    class Started:
        def __init__(self, command: list[str], **_: object) -> None:
            commands.append(command)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            commands.append(["left"])

        def terminate(self) -> None:
            commands.append(["ended"])

    monkeypatch.setattr(module.subprocess, "Popen", Started)
    return commands


def test_a_first_build_is_helped_and_the_help_ends_with_it(home: Home, started: list[list[str]]) -> None:
    with drawing_ahead(home):
        assert len(started) == 1
    assert started[1:] == [["ended"], ["left"]]


def test_a_build_that_fails_ends_the_help_too(home: Home, started: list[list[str]]) -> None:
    with pytest.raises(ValueError, match="a page"), drawing_ahead(home):
        raise ValueError("a page")
    assert started[1:] == [["ended"], ["left"]]


def test_where_drawings_are_kept_nothing_is_started(home: Home, started: list[list[str]]) -> None:
    drawings().put("something", b"drawn")
    with drawing_ahead(home):
        pass
    assert started == []


def test_one_processor_draws_alone(
    home: Home, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with drawing_ahead(home):
        pass
    assert started == []


def test_the_second_process_draws_and_says_nothing(home: Home, tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TOOLKIT_HOME": str(home.root)}
    with subprocess.Popen(
        [sys.executable, "-m", module.__name__],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as ahead:
        while not list(tmp_path.rglob("charts/*/*")) and ahead.poll() is None:
            pass
        ahead.terminate()
        said, _ = ahead.communicate(timeout=20)
    assert list(tmp_path.rglob("charts/*/*"))
    assert said == b""
