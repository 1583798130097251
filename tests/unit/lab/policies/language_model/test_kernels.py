"""What computes linear attention: a package that fails to import is refused where a recipe names it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.stack import require_stack
from toolkit.errors import UsageError
from toolkit.lab.policies.language_model.loading import (
    check_importable,
    check_kernels,
    kernels_of,
    kernels_text,
)

CHILD = """
import json
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3_5ForCausalLM, Qwen3_5TextConfig
from toolkit.errors import UsageError
from toolkit.lab.policies.language_model import loading

sizes = dict(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=2, num_attention_heads=1)
heads = dict(num_key_value_heads=1, head_dim=8, linear_num_key_heads=1, linear_num_value_heads=1)
linear = dict(linear_key_head_dim=8, linear_value_head_dim=8)
layers = dict(layer_types=["linear_attention", "full_attention"])
hybrid = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**sizes, **heads, **linear, **layers))
dense = LlamaForCausalLM(LlamaConfig(**sizes))
said = {"hybrid": loading.kernels_of(hybrid), "dense": loading.kernels_of(dense)}
checks = {"import": loading.check_importable, "model": lambda where: loading.check_kernels(hybrid, where)}
for name, check in checks.items():
    try:
        check("recipe x")
        said[name] = None
    except UsageError as error:
        said[name] = error.as_dict()
print(json.dumps(said))
"""
FUNCTIONS = (
    *("causal_conv1d_fn", "causal_conv1d_update"),
    *("chunk_gated_delta_rule", "recurrent_gated_delta_rule"),
)
RULE = "def chunk_gated_delta_rule(q): ...\ndef fused_recurrent_gated_delta_rule(q): ...\n"


def child(folder: Path, first_line: str) -> dict[str, Any]:
    """Say what a process sees in which fla begins with a line."""
    package = folder / "fla" / "ops"
    package.mkdir(parents=True)
    (folder / "fla" / "__init__.py").write_text(f"{first_line}\nfrom fla.ops import gated_delta_rule\n")
    (package / "__init__.py").touch()
    (package / "gated_delta_rule.py").write_text(RULE)
    path = os.pathsep.join(map(str, (folder, CHECKOUT)))
    ended = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return said


@pytest.mark.slow
def test_a_package_that_fails_to_import_is_seen_and_refused(tmp_path: Path) -> None:
    """What loads the model says nothing, as with fla 0.5.2 and Triton 3.9.0."""
    require_stack()
    said = child(tmp_path, "raise AttributeError(\"module 'triton.language' has no attribute 'x'\")")
    assert said["hybrid"] == dict.fromkeys(FUNCTIONS, "reference")
    assert said["dense"] == {}
    assert "AttributeError: module 'triton.language' has no attribute 'x'" in said["import"]["found"]
    assert "chunk_gated_delta_rule reference" in said["model"]["found"]
    for name in ("import", "model"):
        assert all(said[name][fact] for fact in ("expected", "found", "where", "remedy"))


@pytest.mark.slow
def test_a_package_that_imports_is_what_computes(tmp_path: Path) -> None:
    require_stack()
    said = child(tmp_path, "__version__ = '0.5.2'")
    assert said["hybrid"]["chunk_gated_delta_rule"] == said["hybrid"]["recurrent_gated_delta_rule"] == "fla"
    assert said["hybrid"]["causal_conv1d_fn"] == "reference"
    assert (said["import"], said["model"]) == (None, None)


def test_kernels_that_are_not_installed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fla", None)
    with pytest.raises(UsageError, match="cannot be imported") as raised:
        check_importable("recipe x")
    assert (raised.value.where, "[gpu]" in str(raised.value.remedy)) == ("recipe x", True)


def test_a_function_of_an_unknown_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wrapper of transformers the function's own package counts."""
    namespace: dict[str, Any] = {"__name__": "other.kernels"}
    exec("def chunk_gated_delta_rule(x): ...", namespace)  # noqa: S102 - of a module that there is not
    exec("def forward(self, x): return chunk_gated_delta_rule(x)", namespace)  # noqa: S102
    monkeypatch.setitem(sys.modules, "other.kernels", _module(namespace))
    layer = type("Layer", (), {"forward": namespace["forward"], "__module__": "other.kernels"})
    model = type("Model", (), {"modules": lambda _: [layer()]})()
    assert kernels_text(kernels_of(model)) == "chunk_gated_delta_rule other"
    with pytest.raises(UsageError, match="without it"):
        check_kernels(model, "recipe x")


def _module(namespace: dict[str, Any]) -> ModuleType:
    module = ModuleType("other.kernels")
    vars(module).update(namespace)
    return module
