"""From what a user names to an engine, and to what identifies the policy that it evaluates."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from toolkit.canonical import canonical
from toolkit.errors import UsageError
from toolkit.files import file_sha256
from toolkit.lab.backoffice.schemas import openai_tools
from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.desk import Agent
from toolkit.lab.policies.language_model.conversation import (
    INSTRUCTIONS,
    MAX_TOKENS,
    Conversation,
    Player,
    Turn,
    TurnTaker,
)
from toolkit.lab.policies.language_model.endpoint import CONCURRENCY, TIMEOUT_S, TURN_TOKENS, Endpoint, Server
from toolkit.lab.policies.language_model.loading import installed, load_chat, load_model, model_path

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


_ALLOWED: dict[str, tuple[type, Callable[[Any], bool], str]] = {
    "gpu_memory": (float, lambda share: 0 < share < 1, "a share, above 0 and below 1"),
    "dtype": (str, lambda text: text in DTYPES, ", ".join(DTYPES)),
}


class _NextCall(Exception):  # noqa: N818 - a signal to whoever plays the agent, not an error
    """The agent wants an answer that the conversation does not have yet."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        super().__init__(tool)
        self.call = (tool, arguments)


@dataclass(frozen=True)
class ScriptedEngine:
    """Says what a scripted agent says."""

    agent: str  # its name: `reference` or `careless`

    shares_samples: ClassVar[bool] = True

    def turns(self, conversations: Sequence[Conversation]) -> list[Turn]:
        """Return the next turn of each conversation."""
        return [next_turn(AGENTS[self.agent], conversation.messages) for conversation in conversations]


def next_turn(agent: Agent, messages: Sequence[Mapping[str, Any]]) -> Turn:
    """Return what an agent says next: one call, or nothing where it is done."""
    (prompt,) = (str(message["content"]) for message in messages if message["role"] == "user")
    answers = (json.loads(message["content"]) for message in messages if message["role"] == "tool")

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] | None = next(answers, None)
        if answer is None:
            raise _NextCall(tool, arguments)
        return answer

    try:
        agent(prompt, call)
    except _NextCall as wanted:
        return Turn((wanted.call,), "")
    return Turn((), "")


ENGINES = ("transformers", "vllm", "endpoint", "scripted")
SHARING = ("transformers", "scripted")
"""Those whose samples can be shared between models: the others take a seed, and no noise for every token."""
LIBRARIES = {"transformers": ("transformers", "torch", "peft"), "vllm": ("vllm", "transformers", "torch")}
"""What an engine's samples depend on besides this package."""


@dataclass(frozen=True)
class Opening:
    """An engine as a user names it."""

    engine: str  # one of `ENGINES`
    model: str  # folder or name of the model; what the server calls it; the scripted agent
    revision: str | None = None  # branch, tag or commit of a model on the Hub
    adapter: str | None = None  # folder with an adapter (PEFT) to put on the model
    url: str | None = None  # address of the server, of an endpoint
    key_variable: str | None = None  # environment variable that holds its API key
    temperature: float = 1.0  # of the sampling
    # Most tokens of an endpoint's turn, or of a conversation beyond its opening otherwise; the engine's
    # own number if left out
    max_tokens: int | None = None
    # Further variables of the chat template, such as `enable_thinking`
    chat_options: tuple[tuple[str, Any], ...] = ()
    # Further fields of the questions to a server, such as `top_k`
    request_options: tuple[tuple[str, Any], ...] = ()
    concurrency: int = CONCURRENCY  # most questions to a server at once
    timeout_s: float = TIMEOUT_S  # the time for one whole answer of a server
    options: EngineOptions = UNTOLD  # of an engine in this process


@lru_cache(maxsize=1)
def open_engine(opening: Opening) -> TurnTaker | Player:
    """Return an engine; the same one for the same opening: a model is loaded once a process."""
    if opening.engine not in ENGINES:
        raise UsageError(f"there is no engine {opening.engine!r}", expected=", ".join(ENGINES))
    if opening.engine == "scripted":
        return ScriptedEngine(_agent(opening.model))
    if opening.engine == "endpoint":
        server = Server(opening.url or "", opening.key_variable, timeout_s=opening.timeout_s)
        return Endpoint(
            *(server, opening.model, openai_tools(), opening.temperature),
            *(opening.max_tokens or TURN_TOKENS, opening.concurrency),
            *(dict(opening.chat_options), dict(opening.request_options)),
        )
    path, revision, adapter = model_path(opening.model), opening.revision, opening.adapter
    most, options = opening.max_tokens or MAX_TOKENS, opening.options
    if opening.engine == "transformers":
        from toolkit.lab.policies.language_model.lockstep import BATCH, LocalEngine

        chat = load_chat(path, revision, opening.chat_options)
        model = load_model(path, revision, adapter, dtype=options.dtype)
        at_once = options.conversations or BATCH
        return LocalEngine(model, chat, opening.temperature, most, options.max_length, at_once)
    from toolkit.lab.policies.language_model.vllm_engine import VllmEngine, check_agreement, open_llm

    llm = open_llm(path, revision, adapter, options)
    chat = load_chat(path, revision, opening.chat_options)
    # On the processor: vLLM has the GPU's memory by now.
    check_agreement(llm, chat, load_model(path, revision, adapter, "cpu", options.dtype), adapter)
    return VllmEngine(llm, chat, adapter=adapter, temperature=opening.temperature, max_tokens=most)


def identify(opening: Opening) -> dict[str, Any]:
    """Return what decides an engine's turns, as JSON values; where it runs and how fast does not enter."""
    identity = {
        "engine": opening.engine,
        "model": _called(opening),
        "temperature": opening.temperature,
        "max_tokens": opening.max_tokens or (TURN_TOKENS if opening.engine == "endpoint" else MAX_TOKENS),
        "chat_options": dict(opening.chat_options),
        "instructions": hashlib.sha256(canonical([INSTRUCTIONS, openai_tools()]).encode()).hexdigest(),
    }
    if opening.engine == "scripted":
        return {"engine": opening.engine, "model": _agent(opening.model)}
    if opening.engine == "endpoint":
        return identity | {"request_options": dict(opening.request_options)}
    adapter = None if opening.adapter is None else folder_sha256(Path(opening.adapter))
    weights = model_commit(model_path(opening.model), opening.revision)
    # Left out where none is given, so that evaluations from before there were any go on.
    options = opening.options.deciding()
    identity |= {"engine_options": options} if options else {}
    return identity | {
        "weights": weights,
        "adapter": adapter,
        "libraries": {name: installed(name) for name in LIBRARIES[opening.engine]},
    }


def _agent(name: str) -> str:
    if name not in AGENTS:
        raise UsageError(f"there is no scripted agent {name!r}", expected=", ".join(AGENTS))
    return name


def _called(opening: Opening) -> str:
    """Return what a model is called: of a folder its name, wherever it lies."""
    folder = Path(opening.model)
    return folder.resolve().name if opening.engine in LIBRARIES and folder.is_dir() else opening.model


def model_commit(model: str, revision: str | None) -> str:
    """Return the commit of a model on the Hub, or the SHA-256 of a folder's files."""
    if Path(model).is_dir():
        if revision is not None:
            raise UsageError("a revision is that of a model on the Hub", found=f"the folder {model}")
        return folder_sha256(Path(model))
    from huggingface_hub import hf_hub_download

    try:
        # Of what the cache has, too; the file lies in a folder that has the commit's name.
        return Path(hf_hub_download(model, "config.json", revision=revision)).parent.name
    except (OSError, ValueError) as error:
        problem = "there is no such model: neither a folder, nor one on the Hub that can be had from here"
        found = f"{model}: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
        remedy = "give the folder of a model, or owner/name of one on the Hub (and --revision)"
        raise UsageError(problem, found=found, remedy=remedy) from None


def folder_sha256(folder: Path) -> str:
    """Return the SHA-256 of a folder's visible files: of their names and digests, each pair on a line."""
    if not folder.is_dir():
        raise UsageError("there is no such folder", where=folder)
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    lines = "".join(f"{name} {file_sha256(folder / name)}\n" for name in names)
    return hashlib.sha256(lines.encode()).hexdigest()
