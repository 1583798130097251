"""The packages that a language model needs: the tests that need them are skipped aloud, and fail in CI."""

import os
from importlib.util import find_spec

import pytest

PACKAGES = ("torch", "transformers", "peft")
INSTALL = "pip install --requirement requirements-language-model.txt"


def require_stack() -> None:
    """Fail on a build server and skip a module elsewhere where a package is missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return
    text = f"NO LANGUAGE MODEL WAS TESTED: {', '.join(missing)} missing; run: {INSTALL}"
    if os.environ.get("CI"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text, allow_module_level=True)
