"""The packages that language models need: the tests that need them are skipped aloud, and fail in CI.

Each `require_…` fails on a build server, and skips a module or a test elsewhere, where a package is missing.
"""

import os
from functools import partial
from importlib.util import find_spec

import pytest

PACKAGES = ("torch", "transformers", "peft")
INSTALL = "pip install --requirement requirements-language-model.txt"
DEVELOP = "pip install --requirement requirements-dev.lock"
EVERYTHING = "make test-all"


def _require(what: str, packages: tuple[str, ...], install: str) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if not missing:
        return
    text = f"NO {what} WAS TESTED: {', '.join(missing)} missing; run: {install}"
    if os.environ.get("CI"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text, allow_module_level=True)


def _extra(name: str) -> str:
    return f'pip install "paired-rollouts-toolkit[{name}]"'


require_stack = partial(_require, "LANGUAGE MODEL", PACKAGES, INSTALL)
require_trainer = partial(_require, "TRAINER", (*PACKAGES, "trl"), _extra("train"))
require_vllm = partial(_require, "VLLM", (*PACKAGES, "trl", "vllm"), EVERYTHING)
require_ray = partial(_require, "RAY", ("ray",), _extra("ray"))
require_inspect = partial(_require, "LOG OF INSPECT", ("inspect_ai",), _extra("inspect"))
require_lm_eval = partial(_require, "LOG OF LM_EVAL", (*PACKAGES, "lm_eval"), "pip install 'lm_eval[hf]'")
require_verifiers = partial(_require, "ENVIRONMENT OF VERIFIERS", ("verifiers",), EVERYTHING)
require_openenv = partial(_require, "ENVIRONMENT OF OPENENV", ("openenv",), EVERYTHING)
require_mcp = partial(_require, "MCP", ("mcp",), _extra("mcp"))
require_mcp_servers = partial(
    _require,
    "SERVER OF THE MODEL CONTEXT PROTOCOL",
    ("mcp_server_git", "mcp_server_time"),
    EVERYTHING,
)
require_tensorboard = partial(_require, "TRACKER", ("tensorboard",), INSTALL)
require_readers = partial(_require, "EXPORT", ("in_toto_attestation",), DEVELOP)
