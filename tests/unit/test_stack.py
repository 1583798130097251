"""Tests of language models and of their trainer are never left out silently; what they need is pinned."""

import tomllib

import pytest

from tests.conftest import CHECKOUT
from tests.unit import stack

EACH = pytest.mark.parametrize(
    ("require", "package"),
    [(stack.require_stack, "torch"), (stack.require_trainer, "trl"), (stack.require_ray, "ray")],
)


@EACH
def test_without_a_package_tests_are_skipped_with_the_command_to_run_and_fail_in_ci(
    monkeypatch, require, package
) -> None:
    monkeypatch.setattr(stack, "find_spec", lambda name: None if name == package else name)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"{package} missing; run: pip install") as stopped:
        require()
    assert stopped.value.allow_module_level
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match=f"{package} missing"):
        require()


def pins(lines: list[str]) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(map(int, version.partition(";")[0].split(".")))
        for name, exact, version in (line.partition("==") for line in lines)
        if exact
    }


def lines(name: str) -> list[str]:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_command_names_a_file_that_pins_every_package_exactly() -> None:
    required = lines(stack.INSTALL.split()[-1])
    assert all(len(line.split(";")[0].split("==")) == 2 for line in required)
    assert set(stack.PACKAGES) <= {line.split("==")[0] for line in required}
    assert "://" not in "".join(required)


def test_the_newest_trainer_is_newer_than_the_one_that_is_pinned() -> None:
    newest = pins(lines("requirements-newest-train.txt"))
    with (CHECKOUT / "pyproject.toml").open("rb") as file:
        pinned = pins(tomllib.load(file)["project"]["optional-dependencies"]["train"])
    assert set(newest) == {"transformers", "trl"}
    assert all(newest[name] > pinned[name] for name in newest)
