"""What an engine in this process is told beside its model: its share of memory, lengths, formats, company."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from toolkit.errors import UsageError

DTYPES = ("bfloat16", "float16", "float32")
"""Number formats of weights and sums."""


@dataclass(frozen=True)
class EngineOptions:
    """Options of an engine; None leaves one to the engine."""

    gpu_memory: float | None = None  # vLLM's share of the GPU's memory
    max_length: int | None = None  # most tokens of a conversation, its opening included
    dtype: str | None = None  # one of `DTYPES`; that of the model's files if left out
    tensor_parallel: int | None = None  # GPUs that vLLM divides the model among
    conversations: int | None = None  # most conversations side by side
    prefix_caching: bool | None = None  # whether vLLM keeps what it read of a prefix
    batched_tokens: int | None = None  # most tokens that vLLM takes in a pass

    def deciding(self) -> dict[str, Any]:
        """Return those that decide turns, as far as they are given."""
        given = {name: getattr(self, name) for name in ("max_length", "dtype", "conversations")}
        return {name: value for name, value in given.items() if value is not None}

    def for_vllm(self) -> dict[str, Any]:
        """Return those that are given as `vllm.LLM` calls them."""
        return {VLLM[name]: value for name, value in asdict(self).items() if value is not None}


UNTOLD = EngineOptions()
"""Everything left to the engine."""
VLLM = {
    "gpu_memory": "gpu_memory_utilization",
    "max_length": "max_model_len",
    "dtype": "dtype",
    "tensor_parallel": "tensor_parallel_size",
    "conversations": "max_num_seqs",
    "prefix_caching": "enable_prefix_caching",
    "batched_tokens": "max_num_batched_tokens",
}
HEEDED = {"vllm": tuple(VLLM), "transformers": ("max_length", "dtype", "conversations")}
"""Engine → the options that it heeds; another engine heeds none."""


def read_options(texts: Sequence[str], engine: str) -> EngineOptions:
    """Return options that are given as texts."""
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in VLLM:
            raise UsageError(
                f"there is no engine option {name!r}" if equals else "an engine option is KEY=VALUE",
                expected=", ".join(f"{key}=VALUE" for key in VLLM),
                found=text,
            )
        if name not in HEEDED.get(engine, ()):
            problem = f"the engine {engine} has no use for --engine-option {name}"
            remedy = "leave it out, or name the engine that it is for with --engine"
            raise UsageError(problem, expected=", ".join(HEEDED.get(engine, ())) or None, remedy=remedy)
        kind, allows, expected = _ALLOWED.get(name, (int, lambda n: n >= 1, "a whole number, 1 or more"))
        try:
            given[name] = kind(value)
        except ValueError:
            given[name] = None
        if given[name] is None or not allows(given[name]):
            raise UsageError(f"{name} is out of its range", expected=expected, found=value)
    return EngineOptions(**given)


_ALLOWED: dict[str, tuple[Callable[[str], Any], Callable[[Any], bool], str]] = {
    "gpu_memory": (float, lambda share: 0 < share < 1, "a share, above 0 and below 1"),
    "prefix_caching": ({"on": True, "off": False}.get, lambda _: True, "on, off"),
    "dtype": (str, lambda text: text in DTYPES, ", ".join(DTYPES)),
}
