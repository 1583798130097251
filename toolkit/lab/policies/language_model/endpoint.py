"""An engine behind an OpenAI-compatible `/v1/chat/completions`: vLLM, llama.cpp, SGLang, OpenAI and others.

The server renders the conversation, samples, and reads the calls out of what was said. It gives no tokens, so
that nothing said here can be trained on. A seed is sent with every turn; whether the same seed gives the same
turn again is the server's affair: with batches that vary, mostly it does not.

Servers have sampling settings of their own: vLLM takes them from the model's `generation_config.json` unless
it was started with `--generation-config vllm`. Temperature and `top_p` are sent; what else is, a user says.
"""

import json
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolkit.errors import EXCERPT, DamagedError, IncompleteError, UsageError
from toolkit.lab.policies.language_model.conversation import Conversation, Turn
from toolkit.lab.policies.language_model.exchange import Server
from toolkit.lab.policies.language_model.refusals import SERVE_WITH_TOOLS, ContextError
from toolkit.seeds import turn_seed

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], items: Sequence[T], most: int) -> list[R]:
    """Return what a function returns for each item, a number of them at work at once.

    After the first failure, or an interrupt, no further item is begun; those at work are left to themselves:
    an answer that nobody wants any more may take minutes.
    """
    waiting: queue.SimpleQueue[tuple[int, T]] = queue.SimpleQueue()
    for numbered in enumerate(items):
        waiting.put(numbered)
    answers: queue.SimpleQueue[tuple[int, R | None, BaseException | None]] = queue.SimpleQueue()
    stopped = threading.Event()

    def take() -> None:
        while not stopped.is_set():
            try:
                number, item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                answers.put((number, work(item), None))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                answers.put((number, None, error))

    for _ in range(min(most, len(items))):
        threading.Thread(target=take, daemon=True).start()
    results: dict[int, R] = {}
    try:
        while len(results) < len(items):
            number, answer, error = answers.get()
            if error is not None:
                raise error
            results[number] = answer  # type: ignore[assignment]  # it is an answer where there was no error
    finally:
        stopped.set()
    return [results[number] for number in range(len(items))]


CONCURRENCY = 16
TURN_TOKENS = 1024
_CHAT = "chat/completions"
_LISTS_NONE = ("HTTP 404", "HTTP 405", "HTTP 5")
SEED_BITS = 31
"""A seed that every server takes: some keep 32 bits of it, and some of those mean "none" by the largest."""
MARKS = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>", "<|tool_call", "functools[")
"""How models begin a call: text that holds one is a call that the server did not read."""


@dataclass
class Endpoint:
    """A model that a server has."""

    server: Server  # the server
    model: str  # what the server calls it
    tools: Sequence[Mapping[str, Any]]  # the tools in OpenAI's form
    temperature: float = 1.0  # of the sampling; 0 for the likeliest token
    max_tokens: int = TURN_TOKENS  # most tokens of a turn
    concurrency: int = CONCURRENCY  # most questions at once
    # Further variables of the server's chat template; not every server takes them
    chat_options: Mapping[str, Any] = field(default_factory=dict)
    # Further fields of every question, such as `top_k`; None takes one out
    request_options: Mapping[str, Any] = field(default_factory=dict)
    _has_read_a_call: threading.Event = field(default_factory=threading.Event, repr=False)

    def check(self) -> dict[str, Any] | None:
        """Ask the server for its models, once, so that what is wrong is found before anything is played."""
        try:
            answer = self.server.ask("models", attempts=1)
        except (IncompleteError, UsageError) as error:
            if (error.found or "").startswith(_LISTS_NONE):
                return None
            raise
        cards = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(cards, list):
            return None
        models = {str(card.get("id")): card for card in cards if isinstance(card, dict)}
        if models and self.model not in models:
            problem = f"the server has no model {self.model[:EXCERPT]!r}"
            expected = ", ".join(sorted(models)[:5])
            where = self.server.url
            raise UsageError(problem, expected=expected, where=where, remedy="give one of these as --model")
        return models.get(self.model)

    def turns(self, conversations: Sequence[Conversation]) -> list[Turn]:
        """Return one turn of each conversation."""
        turns = side_by_side(self._turn, conversations, self.concurrency)
        self._check_calls_are_read(turns)
        return turns

    def _turn(self, conversation: Conversation) -> Turn:
        try:
            answer = self._answer(conversation)
        except ContextError:
            if not conversation.turns:
                raise
            return Turn((), cut=True)  # no room is left in what was a conversation, as in every other engine
        try:
            turn = read_turn(answer)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            problem = "the server's answer is no turn of a conversation"
            expected = "choices, with a message in the first"
            found = f"{type(error).__name__} {error}: {json.dumps(answer)[:EXCERPT]}"
            raise DamagedError(problem, expected=expected, found=found, where=self.server.url) from None
        if turn.calls:
            self._has_read_a_call.set()
        return turn

    def _answer(self, conversation: Conversation) -> Any:
        """Return the server's answer; one without a limit where the usual limit is more than is left."""
        question = self._question(conversation)
        try:
            return self.server.ask(_CHAT, question)
        except ContextError:
            if question.pop("max_tokens", None) is None:
                raise
            return self.server.ask(_CHAT, question)

    def _question(self, conversation: Conversation) -> dict[str, Any]:
        question = {
            "model": self.model,
            "messages": [_sent(message) for message in conversation.messages],
            "tools": list(self.tools),
            "tool_choice": "auto",
            "temperature": self.temperature,
            "top_p": 1.0,
            "max_tokens": self.max_tokens,
            "seed": turn_seed(conversation.seed, conversation.turns) >> (64 - SEED_BITS),
            "chat_template_kwargs": dict(self.chat_options) or None,
            **self.request_options,
        }
        return {name: value for name, value in question.items() if value is not None}

    def _check_calls_are_read(self, turns: Sequence[Turn]) -> None:
        """Refuse to take calls that nobody read for a model that makes none."""
        if self._has_read_a_call.is_set():
            return
        for turn in turns:
            if any(mark in turn.text for mark in MARKS):
                problem = "the server gives the model's calls back as text: it does not read them"
                found = turn.text[:EXCERPT]
                raise UsageError(problem, found=found, where=self.server.url, remedy=SERVE_WITH_TOOLS)


def read_turn(answer: Mapping[str, Any]) -> Turn:
    """Return the turn that an answer holds."""
    choice = answer["choices"][0]
    message = choice["message"]
    calls = tuple(_call(call["function"]) for call in message.get("tool_calls") or ())
    return Turn(calls, _text(message.get("content")), cut=choice.get("finish_reason") == "length")


def _call(function: Mapping[str, Any]) -> tuple[str, Any]:
    name, arguments = function.get("name"), function.get("arguments")
    return name if isinstance(name, str) else json.dumps(name), _arguments(arguments)


def _arguments(said: Any) -> Any:
    """Return arguments as decoded JSON; as they were said, where that is none that could be sent back."""
    if not isinstance(said, str):
        return {} if said is None else said
    try:
        read = json.loads(said) if said.strip() else {}
        json.dumps(read, allow_nan=False)
    except (ValueError, RecursionError):
        return said
    return read


def _text(content: Any) -> str:
    """Return what was said besides, of the two forms in which servers say it."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _sent(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as servers take it: the arguments of calls as JSON text.

    Servers read that text again, and their templates go through it as an object: what was said is wrapped
    into one where it is none.
    """
    if not message.get("tool_calls"):
        return {name: value for name, value in message.items() if name != "tool_calls"}
    return {**message, "tool_calls": [_sent_call(call) for call in message["tool_calls"]]}


def _sent_call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call["function"].get("arguments")
    whole = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    return {**call, "type": "function", "function": {**call["function"], "arguments": json.dumps(whole)}}
