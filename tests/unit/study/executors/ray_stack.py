"""The package Ray: the tests that need it are skipped aloud, and fail in CI."""

import os
from importlib.util import find_spec

import pytest

INSTALL = "pip install 'paired-rollouts-toolkit[ray]'"


def require_ray() -> None:
    """Fail on a build server and skip a module elsewhere where Ray is missing."""
    if find_spec("ray") is not None:
        return
    text = f"RAY WAS NOT TESTED: it is not installed; run: {INSTALL}"
    if os.environ.get("CI"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text, allow_module_level=True)
