"""What a server's refusals mean to a user: by their status, and by the words of the servers that are in use.

Source:
    vLLM: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set' and "This
    model's maximum context length is …"; llama.cpp: "tools param requires --jinja flag", "the request exceeds
    the available context size"; Ollama: "… does not support tools"; OpenAI: code `context_length_exceeded`.
"""

import json
import re
from http import HTTPStatus

from toolkit.errors import EXCERPT, IncompleteError, ToolkitError, UsageError

_TOOLS = re.compile(
    r"tool.?choice|tool.?call.?parser|--jinja|param: tools|(not|n't) support (the )?(tool|function)",
    re.IGNORECASE,
)
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
