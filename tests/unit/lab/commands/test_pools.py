"""`toolkit pools`: list, show, build, verify."""

import pytest

from tests.conftest import Toolkit
from toolkit.lab.tasks.pools import load_task


def test_a_task_is_shown(toolkit: Toolkit) -> None:
    task = load_task("validation:3")
    shown = toolkit("pools", "show", "validation:3")
    assert task.prompt in shown.out
    assert all(f"{call.tool}(" in shown.out for call in task.plan)
    assert toolkit("pools", "show", "validation:3", "--json").json()["budget"] == task.budget


@pytest.mark.slow
def test_the_shipped_pools_are_what_the_generator_gives(toolkit: Toolkit) -> None:
    done = toolkit("pools", "build", "--check", "--json")
    assert (done.code, done.json()["outcome"]) == (0, "identical")
