"""A language model that is small enough to be trained in tests."""

from typing import Any

import pytest

from tests.unit.stack import require_trainer


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """Return a tokenizer that has seen the reference agent at work."""
    require_trainer()
    from tests.unit.lab.training.language_model.small_model import a_tokenizer

    return a_tokenizer()


@pytest.fixture(scope="session")
def model(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a small untrained model."""
    from tests.unit.lab.training.language_model.small_model import saved

    return saved(tmp_path_factory.mktemp("model"), tokenizer)
