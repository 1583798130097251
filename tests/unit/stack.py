"""The packages that language models need: the tests that need them are skipped aloud, and fail in CI."""

import os
from importlib.util import find_spec

import pytest

PACKAGES = ("torch", "transformers", "peft")
INSTALL = "pip install --requirement requirements-language-model.txt"


def require_stack() -> None:
    """Fail on a build server, and skip a module or a test elsewhere, where a package is missing."""
    _require("LANGUAGE MODEL", PACKAGES, INSTALL)


def require_trainer() -> None:
    """Likewise for the packages of the extra `train`."""
    _require("TRAINER", (*PACKAGES, "trl"), 'pip install "paired-rollouts-toolkit[train]"')


def require_vllm() -> None:
    """Likewise for vLLM, in a build for processors."""
    _require("VLLM", (*PACKAGES, "trl", "vllm"), "make test-all")


def require_ray() -> None:
    """Likewise for Ray."""
    _require("RAY", ("ray",), 'pip install "paired-rollouts-toolkit[ray]"')


def require_inspect() -> None:
    """Likewise for the reader of Inspect's logs."""
    _require("LOG OF INSPECT", ("inspect_ai",), 'pip install "paired-rollouts-toolkit[inspect]"')


def require_lm_eval() -> None:
    """Likewise for lm-evaluation-harness."""
    _require("LOG OF LM_EVAL", (*PACKAGES, "lm_eval"), "pip install 'lm_eval[hf]'")


def require_verifiers() -> None:
    """Likewise for verifiers."""
    _require("ENVIRONMENT OF VERIFIERS", ("verifiers",), "make test-all")


def require_openenv() -> None:
    """Likewise for OpenEnv."""
    _require("ENVIRONMENT OF OPENENV", ("openenv",), "make test-all")


def require_mcp() -> None:
    """Likewise for the Model Context Protocol's own package."""
    _require("MCP", ("mcp",), 'pip install "paired-rollouts-toolkit[mcp]"')


def require_mcp_servers() -> None:
    """Likewise for other people's servers of the Model Context Protocol."""
    _require("SERVER OF THE MODEL CONTEXT PROTOCOL", ("mcp_server_git", "mcp_server_time"), "make test-all")


def require_tensorboard() -> None:
    """Likewise for TensorBoard."""
    _require("TRACKER", ("tensorboard",), INSTALL)


def require_readers() -> None:
    """Likewise for the packages by which other projects read their own formats."""
    _require("EXPORT", ("in_toto_attestation",), "pip install --requirement requirements-dev.lock")


def _require(what: str, packages: tuple[str, ...], install: str) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if not missing:
        return
    text = f"NO {what} WAS TESTED: {', '.join(missing)} missing; run: {install}"
    if os.environ.get("CI"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text, allow_module_level=True)
