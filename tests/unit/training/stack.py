"""The packages of the extra `train`: the tests that need them are skipped aloud, and fail in CI."""

import os
from importlib.util import find_spec

import pytest

PACKAGES = ("torch", "transformers", "peft", "trl")
INSTALL = 'pip install "paired-rollouts-toolkit[train]"'


def require_trainer() -> None:
    """Fail on a build server and skip a test elsewhere where a package is missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return
    text = f"NO TRAINER WAS TESTED: {', '.join(missing)} missing; run: {INSTALL}"
    if os.environ.get("CI"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
