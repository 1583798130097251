"""What computes linear attention: a package that fails to import is refused where a recipe names it."""

import sys
from types import ModuleType
from typing import Any

import pytest

from toolkit.errors import UsageError
from toolkit.lab.policies.language_model.loading import (
    check_importable,
    check_kernels,
    kernels_of,
    kernels_text,
)


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
