"""An engine behind an OpenAI-compatible `/v1/chat/completions`; what can get better is asked again."""

import http.client
import json
import os
import queue
import re
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from toolkit.deadline import within
from toolkit.errors import EXCERPT, DamagedError, IncompleteError, ToolkitError, UsageError
from toolkit.lab.policies.language_model.conversation import Conversation, Turn
from toolkit.seeds import turn_seed

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], items: Sequence[T], most: int) -> list[R]:
    """Return what a function returns for each item, a number of them at work at once."""
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


ATTEMPTS = 5
PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
TIMEOUT_S = 600.0
"""A whole answer: a long turn of a large model on a busy server takes minutes."""
LARGEST_ANSWER = 16 * 2**20
"""Bytes: a turn has some thousand tokens, and is less than a megabyte as JSON."""
LARGEST_REFUSAL = 2**16
"""Bytes of which an error quotes the first."""


# vLLM: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'; llama.cpp:
# "tools param requires --jinja flag"; Ollama: "… does not support tools".
_TOOLS = re.compile(
    r"tool.?choice|tool.?call.?parser|--jinja|param: tools|(not|n't) support (the )?(tool|function)",
    re.IGNORECASE,
)
# vLLM: "This model's maximum context length is …"; llama.cpp: "the request exceeds the available context
# size"; OpenAI: code `context_length_exceeded`.
_CONTEXT = re.compile(
    r"context.?(length|size|window)|maximum (model|sequence|input) length|max_model_len|too many tokens"
    r"|prompt is too long|exceeds? the (model|maximum|available)",
    re.IGNORECASE,
)
SERVE_WITH_TOOLS = (
    "serve it with tool calling: `vllm serve MODEL --enable-auto-tool-choice --tool-call-parser NAME`, "
    "`llama-server --jinja`, `python -m sglang.launch_server --tool-call-parser NAME`"
)


class ContextError(IncompleteError):
    """The model's context is too small for a conversation."""


def refusal(status: int, body: str, url: str) -> ToolkitError:
    """Return the error that a refusal stands for."""
    kind: type[ToolkitError] = UsageError
    problem, remedy = "the server refuses the question", None
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        kind, problem = IncompleteError, "the server wants another API key, or one at all"
        remedy = "put the key into an environment variable and name it: --api-key-env NAME"
    elif HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        problem = "the server sends elsewhere, where no key is sent to"
        remedy = "give the address that it moved to"
    elif _TOOLS.search(body):
        problem, remedy = "the server calls no tools with this model", SERVE_WITH_TOOLS
    elif status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _CONTEXT.search(body):
        kind, problem = ContextError, "the model's context is too small for the conversation"
        remedy = "serve the model with a longer context (vLLM: --max-model-len), or let it say less "
        remedy += "(--max-tokens); what was recorded is kept"
    elif status == HTTPStatus.NOT_FOUND:
        problem = "the server knows no such model, or is asked in the wrong place"
        remedy = "--model takes the name that the server gives it (see its /v1/models); mostly the address "
        remedy += "ends in /v1"
    return kind(problem, found=f"HTTP {status}: {words(body)}", where=url, remedy=remedy)


def is_final(status: int, body: str) -> bool:
    """Return whether asking again is of no use: llama.cpp says with status 500 that it calls no tools."""
    busy = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return not busy or bool(_TOOLS.search(body))


def words(body: str) -> str:
    """Return what a refusal says, in the forms in which servers say it."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return body[:EXCERPT].strip() or "nothing said"
    message = document.get("error", document) if isinstance(document, dict) else document
    if isinstance(message, dict):
        message = message.get("message") or message.get("detail") or message
    return (message if isinstance(message, str) else json.dumps(message))[:EXCERPT]


@dataclass(frozen=True)
class Server:
    """A server, and how it is asked."""

    url: str  # its address, down to the version: `http://localhost:8000/v1`
    # Environment variable that holds the API key; None for a server that wants none. The key itself is in
    # no value, no file and no message of this package.
    key_variable: str | None = None
    attempts: int = ATTEMPTS  # most requests for one answer
    timeout_s: float = TIMEOUT_S  # the time for one whole answer

    def ask(
        self, path: str, document: Mapping[str, Any] | None = None, *, attempts: int | None = None
    ) -> Any:
        """Return the JSON that the server answers with."""
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(  # noqa: S310 - `server_url` lets http and https through alone
            f"{self.url}/{path}", body, self._headers(), method="GET" if body is None else "POST"
        )
        most = attempts or self.attempts
        for attempt in range(1, most + 1):
            try:
                return _read_json(self._exchange(request), self.url)
            except _Passing as passing:
                if attempt == most:
                    times = "once" if attempt == 1 else f"{attempt} times"
                    raise IncompleteError(
                        "the server does not answer",
                        found=f"{passing.reason} (asked {times})",
                        where=self.url,
                        remedy="check that it is running, and its address; the same command again goes on "
                        "from what was recorded",
                    ) from None
                time.sleep(min(passing.wait_s or PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S))
        raise AssertionError(most)

    def _exchange(self, request: urllib.request.Request) -> bytes:
        try:
            return within(self.timeout_s, lambda: self._request(request))
        except TimeoutError as error:
            self._unreached(error)

    def _request(self, request: urllib.request.Request) -> bytes:
        try:
            with _OPENER.open(request, timeout=self.timeout_s) as answer:
                content: bytes = answer.read(LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                body = self._without_key(error.read(LARGEST_REFUSAL).decode(errors="replace"))
            if is_final(error.code, body):
                raise refusal(error.code, body, self.url) from None
            raise _Passing(f"HTTP {error.code}: {words(body)}", _seconds(error.headers)) from None
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            self._unreached(error)
        if len(content) > LARGEST_ANSWER:
            problem = "the server's answer has no end"
            expected = f"{LARGEST_ANSWER} bytes at most"
            remedy = "check the address, and what the server answers there"
            raise DamagedError(problem, expected=expected, where=self.url, remedy=remedy)
        return content

    def _unreached(self, error: Exception) -> NoReturn:
        """Tell a server that does not answer from one that may yet."""
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            raise IncompleteError(
                "the server did not answer in time",
                expected=f"a whole answer within {self.timeout_s:g} s",
                where=self.url,
                remedy="give it more time (--timeout), or fewer questions at once (--concurrency), and the "
                "same command again: what was recorded is kept",
            ) from None
        if isinstance(reason, ssl.SSLError):
            raise IncompleteError(
                "the server's TLS does not do", found=reason, where=self.url, remedy="check the address"
            ) from None
        raise _Passing(str(reason) or type(reason).__name__) from None

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "toolkit"}
        key = self._key()
        return headers if key is None else headers | {"Authorization": f"Bearer {key}"}

    def _key(self) -> str | None:
        if self.key_variable is None:
            return None
        key = os.environ.get(self.key_variable, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            problem = f"the environment variable {self.key_variable} holds no API key"
            found = "something else" if key else "nothing"
            remedy = "set it, or leave --api-key-env out for a server that wants no key"
            raise UsageError(problem, expected="visible ASCII characters", found=found, remedy=remedy)
        return key

    def _without_key(self, text: str) -> str:
        key = self._key()
        return text if key is None else text.replace(key, "(the key)")


class _Passing(Exception):  # noqa: N818 - a signal to ask again, not an error
    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_s = wait_s


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow nobody elsewhere: the key would go there, too."""

    def redirect_request(self, *_: Any) -> None:
        pass


_OPENER = urllib.request.build_opener(_NoRedirect)


def server_url(text: str) -> str:
    """Return a server's address as it is asked, from what a user calls it."""
    try:
        parts = urlsplit(text.strip())
        sound = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    is_plain = sound and parts.scheme in {"http", "https"} and "@" not in parts.netloc
    if not is_plain or parts.query or parts.fragment:
        problem = "this is not the address of a server"
        found = "an address with a password" if "@" in text else text[:EXCERPT]
        remedy = "an API key is given by the variable that holds it: --api-key-env NAME"
        raise UsageError(problem, expected="http://localhost:8000/v1", found=found, remedy=remedy)
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def _seconds(headers: Any) -> float | None:
    text = str(headers.get("Retry-After", ""))
    return float(text) if text.isascii() and text.isdigit() else None


def _read_json(content: bytes, url: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        found = content[:EXCERPT].decode(errors="replace")
        remedy = "check that the address is that of an OpenAI-compatible server; mostly it ends in /v1"
        raise DamagedError("the server's answer is not JSON", found=found, where=url, remedy=remedy) from None


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
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _sent(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as servers take it: the arguments of calls as JSON text."""
    if not message.get("tool_calls"):
        return {name: value for name, value in message.items() if name != "tool_calls"}
    calls = []
    for call in message["tool_calls"]:
        arguments = call["function"].get("arguments")
        whole = arguments if isinstance(arguments, dict) else {"arguments": arguments}
        function = {**call["function"], "arguments": json.dumps(whole)}
        calls.append({**call, "type": "function", "function": function})
    return {**message, "tool_calls": calls}
