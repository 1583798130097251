"""From what a user names to an engine, and to what identifies the policy that it evaluates."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from toolkit.lab.policies.language_model.options import UNTOLD, EngineOptions


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
    is_folder = opening.engine in LIBRARIES and Path(opening.model).is_dir()
    identity = {
        "engine": opening.engine,
        # Of a folder its name, wherever it lies.
        "model": Path(opening.model).resolve().name if is_folder else opening.model,
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
