"""Progress: on a terminal every long command says how much of how much is done, and nowhere else a word."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from toolkit.cli import output, power
from toolkit.registers.study import open_study
from toolkit.verification.steps import number_of_steps

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
