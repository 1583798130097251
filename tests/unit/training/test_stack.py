"""Tests of the trainer are never left out silently, and run with the newest trainer too."""

import tomllib

import pytest

from tests.conftest import CHECKOUT
from tests.unit.training import stack


@pytest.fixture
def without_trl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "find_spec", lambda name: None if name == "trl" else name)


@pytest.mark.usefixtures("without_trl")
def test_without_trl_a_test_is_skipped_with_the_command_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="trl missing; run: pip install"):
        stack.require_trainer()


@pytest.mark.usefixtures("without_trl")
def test_without_trl_a_build_server_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="trl missing"):
        stack.require_trainer()


def pins(lines: list[str]) -> dict[str, tuple[int, ...]]:
    found = {}
    for line in lines:
        name, exact, version = line.partition("==")
        if exact:
            found[name] = tuple(map(int, version.split(".")))
    return found


def test_the_newest_trainer_is_newer_than_the_one_that_is_pinned() -> None:
    text = (CHECKOUT / "requirements-newest-train.txt").read_text(encoding="utf-8")
    newest = pins([line for line in text.splitlines() if not line.startswith("#")])
    with (CHECKOUT / "pyproject.toml").open("rb") as file:
        pinned = pins(tomllib.load(file)["project"]["optional-dependencies"]["train"])
    assert set(newest) == {"transformers", "trl"}
    assert all(newest[name] > pinned[name] for name in newest)
