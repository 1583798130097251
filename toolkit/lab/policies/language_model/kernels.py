"""What computes a model's linear attention: a package's kernels, or the reference of transformers."""

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import getclosurevars, isfunction, unwrap
from typing import Any

from toolkit.errors import EXCERPT, UsageError
from toolkit.lab.policies.language_model.loading import installed

DISTRIBUTION = "flash-linear-attention"
PACKAGE = "fla"
REFERENCE = "reference"
RULE = "gated_delta_rule"
_MODULE = f"{PACKAGE}.ops.{RULE}"
_FUNCTIONS = (RULE, "causal_conv1d")
_CHOSEN = "implementation"
_REMEDY = (
    "install the Triton that this PyTorch pins: pip install 'paired-rollouts-toolkit[gpu]'; or name a recipe "
    f"whose packages leave {DISTRIBUTION} out: the reference of transformers computes then, slower"
)


def kernels_of(model: Any) -> dict[str, str]:
    """Return which package computes each function of a model's linear attention, by the function's name."""
    found: dict[str, str] = {}
    for kind in {type(module) for module in model.modules()}:
        found |= dict(_functions_of(kind))
    return dict(sorted(found.items()))


def kernels_text(kernels: Mapping[str, str]) -> str | None:
    """Return them as a row of `launches` has them; None where there are none."""
    return ", ".join(f"{name} {package}" for name, package in kernels.items()) or None


def check_importable(where: str) -> None:
    """Check that flash-linear-attention's kernels can be imported."""
    try:
        import_module(_MODULE)
    except Exception as error:  # noqa: BLE001 - compilers and drivers raise errors of their own
        text = str(error).strip().partition("\n")[0][:EXCERPT]
        problem = f"{DISTRIBUTION} is named by the recipe, and its kernels cannot be imported"
        found = f"{type(error).__name__}: {text}, with Triton {installed('triton') or 'missing'}"
        raise UsageError(problem, expected=_MODULE, found=found, where=where, remedy=_REMEDY) from None


def check_kernels(model: Any, where: str) -> None:
    """Check that a model's delta rule is computed by flash-linear-attention."""
    kernels = kernels_of(model)
    others = {name: package for name, package in kernels.items() if RULE in name and package != PACKAGE}
    if others:
        problem = f"the recipe names {DISTRIBUTION}, and transformers computes linear attention without it"
        expected = f"{RULE} of {PACKAGE}"
        raise UsageError(problem, expected=expected, found=kernels_text(others), where=where, remedy=_REMEDY)


def _functions_of(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the functions of linear attention that a layer's forward pass calls, each with its package."""
    forward = getattr(kind, "forward", None)
    namespace = vars(sys.modules[kind.__module__])
    for name in unwrap(forward).__code__.co_names if isfunction(forward) else ():
        function = namespace.get(name)
        if isfunction(function) and any(part in name for part in _FUNCTIONS):
            chosen = getclosurevars(function).nonlocals.get(_CHOSEN, function)
            package = chosen.__module__.partition(".")[0]
            yield name.removeprefix("torch_"), REFERENCE if package == "transformers" else package
