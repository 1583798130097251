"""The published study's tasks without their words: those for evaluation, generated once."""

import pytest

from toolkit.lab.worlds.published.tasks import Task, pools
from toolkit.lab.worlds.published.words import Words, placeholders


@pytest.fixture(scope="session")
def words() -> Words:
    return placeholders()


@pytest.fixture(scope="session")
def plain(words: Words) -> dict[str, list[Task]]:
    """Return the pools of validation, test and diagnostic: the training pool takes four times as long."""
    return pools(words, splits=("heldout",))
