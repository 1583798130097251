"""`toolkit evaluate` with vLLM: in its process, and behind a server on loopback."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.vllm.conftest import PROCESSOR, Evaluate, alike

pytestmark = pytest.mark.slow
COMMIT, OTHER = "a" * 40, "b" * 40
START_S = 300


@pytest.fixture
def server(model: str, tmp_path: Path) -> Iterator[str]:
    """Start vLLM's server; give its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "model": model,
        "served-model-name": "padded",
        "host": "127.0.0.1",
        "port": port,
        "generation-config": "vllm",
        "hf-overrides": '{"partial_rotary_factor": 1.0}',
        "tool-parser-plugin": Path(__file__).parent / "tool_parser.py",
        "tool-call-parser": "small",
    }
    asked = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    called = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--enable-auto-tool-choice", *asked]
    url = f"http://127.0.0.1:{port}/v1"
    with (tmp_path / "server.log").open("w") as log:
        environment = {**os.environ, **PROCESSOR}
        process = subprocess.Popen(called, cwd=CHECKOUT, env=environment, stdout=log, stderr=log)
    try:
        _await(url, process, tmp_path / "server.log")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/models"):  # noqa: S310 - on loopback
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(1)
    pytest.fail(log.read_text()[-5000:])


def test_behind_its_server_and_in_the_process_vllm_plays_as_transformers_does(
    server: str, model: str, evaluate: Evaluate
) -> None:
    """Each takes the likeliest token. A server writes anew what was said, not always by the same tokens."""
    expected = evaluate("--engine", "transformers", "--model", model, "--max-tokens", 2500)
    assert alike(evaluate("--engine", "vllm", "--model", model, "--max-tokens", 2500), expected)
    assert alike(evaluate("--endpoint", server, "--model", "padded", "--max-tokens", 100), expected, least=4)


def test_options_of_the_engine_reach_it(model: str, evaluate: Evaluate) -> None:
    """A conversation may have 900 tokens, its opening included: some end there, as with transformers."""
    options = [part for text in ("max_length=900", "conversations=3") for part in ("--engine-option", text)]
    asked = ("--model", model, "--max-tokens", 2500)
    expected = evaluate("--engine", "transformers", *asked, *options)
    assert expected != evaluate("--engine", "transformers", *asked)
    found = evaluate("--engine", "vllm", *asked, *options, "--engine-option", "gpu_memory=0.15")
    assert sum(mine == theirs for mine, theirs in zip(found, expected, strict=True)) >= 6


def test_the_revision_that_was_asked_for_is_the_one_that_vllm_opens(model, evaluate, tmp_path) -> None:
    """The newest has other weights: the command itself would refuse it."""
    import torch
    from safetensors.torch import load_file, save_file

    repository = tmp_path / "hub" / "models--tests--padded"
    for commit in (COMMIT, OTHER):
        shutil.copytree(model, repository / "snapshots" / commit)
    weights = load_file(repository / "snapshots" / OTHER / "model.safetensors")
    name = "model.embed_tokens.weight"
    weights[name] = torch.roll(weights[name], 1, 0)  # every word is another
    save_file(weights, repository / "snapshots" / OTHER / "model.safetensors", {"format": "pt"})
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(OTHER)
    asked = ("--engine", "vllm", "--model", "tests/padded", "--revision", COMMIT, "--max-tokens", 800)
    hub = {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    found = evaluate(*asked, **hub)
    assert alike(found, evaluate("--engine", "transformers", "--model", model, "--max-tokens", 800))
