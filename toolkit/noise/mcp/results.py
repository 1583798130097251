"""Answers of the Model Context Protocol under noise: what its structure says and what its text says agree."""

import json
from collections.abc import Callable
from typing import Any

from toolkit.noise.declaration import Declaration
from toolkit.noise.regimes import Regime
from toolkit.noise.session import Begun, Session

Json = dict[str, Any]
Change = Callable[[Any], Any]


def noisy_session(declaration: Declaration, regime: Regime, schedule_seed: int) -> Session:
    """Return an episode whose answers are results of calls."""
    return Session(declaration, regime, schedule_seed, changed)


def finish(session: Session, begun: Begun, response: Json) -> Json:
    """Return the response that is shown, given the server's; the same object where it is shown as it is."""
    result = response.get("result")
    if type(result) is not dict or result.get("isError") or type(result.get("content")) is not list:
        session.failed(begun, response)
        return response
    shown = session.end(begun, result)
    return response if shown is result else {"result": shown if "content" in shown else result_of(shown)}


def result_of(answer: Json) -> Json:
    """Return an answer of the noise layer as the result of a call."""
    text = {"type": "text", "text": json.dumps(answer)}
    return {
        "content": [text],
        "structuredContent": answer,
        "isError": "error" in answer,
        "resultType": "complete",
    }


def read_by_agent(response: Json) -> Json:
    """Return a response without what concerns only the protocol: its `_meta` and the like."""
    result = response.get("result")
    if type(result) is not dict:
        return response
    said = {name: result[name] for name in ("content", "structuredContent") if name in result}
    return {**said, "isError": bool(result.get("isError"))}


def changed(result: Json, change: Change) -> Json:
    """Return a result with a change in what it says: in its structure, or in its text."""
    blocks = [block for block in result["content"] if _is_text(block)]
    others = [block for block in result["content"] if not _is_text(block)]
    structure = result.get("structuredContent")
    if structure is not None:
        shown = change(structure)
        if shown == structure:
            return result
        said = _restated([block["text"] for block in blocks], structure, shown)
        first = blocks[0] if blocks else {"type": "text"}
        return {**result, "content": [{**first, "text": said}, *others], "structuredContent": shown}
    values = [_value(block["text"]) for block in blocks]
    if not values:
        return result
    # Servers write a list as one block, or an item a block.
    whole = values[0] if len(values) == 1 else values
    shown = change(whole)
    if shown == whole:
        return result
    texts = map(_text, [shown] if len(values) == 1 else shown)
    kept = [{**block, "text": text} for block, text in zip(blocks, texts, strict=False)]
    return {**result, "content": [*kept, *others]}


def _restated(texts: list[str], structure: Any, shown: Any) -> str:
    """Return the text that says of the structure shown what the texts said of the whole one."""
    pairs = [(structure, shown)]
    if type(structure) is dict and type(shown) is dict:
        pairs += [(value, shown[name]) for name, value in structure.items() if name in shown]
    if len(texts) == 1:
        for before, after in pairs:
            if texts[0] == before or _value(texts[0]) == before:
                return _text(after)
    return _text(shown)


def _is_text(block: Any) -> bool:
    return type(block) is dict and block.get("type") == "text" and type(block.get("text")) is str


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(value: Any) -> str:
    return value if type(value) is str else json.dumps(value, ensure_ascii=False)
