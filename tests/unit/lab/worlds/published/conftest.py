"""The published study's tasks without their words, generated once: those for evaluation, and all."""

import pytest

from toolkit.lab.worlds.published import audit
from toolkit.lab.worlds.published.audit import Reference
from toolkit.lab.worlds.published.tasks import Task, pools
from toolkit.lab.worlds.published.words import Words, placeholders
from toolkit.registers.study import Study


@pytest.fixture(scope="session")
def words() -> Words:
    return placeholders()


@pytest.fixture(scope="session")
def plain(words: Words) -> dict[str, list[Task]]:
    """Return the pools of validation, test and diagnostic: the training pool takes four times as long."""
    return pools(words, splits=("heldout",))


@pytest.fixture(scope="session")
def reference(words: Words, plain: dict[str, list[Task]], published: Study) -> Reference:
    """Return the scripted agents, with all tasks: the longest step of these tests."""
    made = pools(words, splits=("train",)) | plain
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "pools", lambda _words, _progress: made)
        return Reference(published.rows("runs"))
