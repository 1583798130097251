"""A record of an episode over the Model Context Protocol: JSON lines, each written before it is answered.

The first line says under what noise the calls were made, the last how it ended; between them stands a line a
call. A proxy that is killed leaves no last line, and at most half of the line that it was writing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import toolkit
from toolkit.errors import DamagedError, VerificationError
from toolkit.files import LARGEST_ROWS, read_bytes
from toolkit.noise.declaration import Declaration, declaration_of_document
from toolkit.noise.mcp.server import Server
from toolkit.noise.regimes import REGIMES, Regime
from toolkit.noise.session import Begun, Session
from toolkit.seeds import LIMIT

FORMAT = 1
Json = dict[str, Any]


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


def changed(result: Json, change: Callable[[Any], Any]) -> Json:
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


_HEADER = {
    "format": int,
    "toolkit": str,
    "regime": str,
    "schedule": int,
    "declaration_sha256": str,
    "declaration": dict,
    "proposed": bool,
    "server": dict,
}
_CALL = {"tool": str, "arguments": dict, "answer": dict}


class Recorder:
    """Writes a record; `proposed` says that nobody has confirmed the declaration."""

    def __init__(self, path: Path, session: Session, server: Json, *, proposed: bool) -> None:
        self._stream = path.open("wb")
        self._session = session
        declared = session.declaration
        header = {"format": FORMAT, "toolkit": toolkit.__version__, "regime": session.regime.name}
        header |= {"schedule": session.schedule.seed, "declaration_sha256": declared.sha256}
        self.write({**header, "declaration": declared.document(), "proposed": proposed, "server": server})

    def close(self, why: str) -> None:
        """Add the last line, which says how the episode ended."""
        with self._stream:
            self.write(_end(self._session, why))

    def write(self, line: Json) -> None:
        """Add a line."""
        self._stream.write(json.dumps(line).encode() + b"\n")
        self._stream.flush()


def entry(session: Session, shown: Json, whole: Json | None) -> Json:
    """Return the line of an episode's last call."""
    call = session.calls[-1]
    drawn = None if call.key is None else session.schedule.draw(call.tool, *call.key)
    return {
        "call": len(session.calls) - 1,
        "tool": call.tool,
        "arguments": call.arguments,
        "key": None if call.key is None else list(call.key),
        "draw": drawn and {"gate": drawn.gate, "type": drawn.type, "magnitude": drawn.magnitude},
        "fault": call.fault,
        "blocked_by": call.blocked_by,
        "changed": call.fault is not None and session.exposures[-1].changed,
        "answer": shown,
        **({} if whole is None or shown is whole else {"whole": whole}),
    }


@dataclass(frozen=True)
class Record:
    """A record as it was read."""

    path: Path  # its file
    regime: str  # name of the noise
    schedule: int  # seed of the schedule ω
    declaration: Declaration  # what was known of the tools
    calls: Sequence[Json]  # the lines of calls
    end: Json | None  # the last line; None where it is missing
    is_cut: bool  # whether half a line follows the last whole one

    def session(self) -> Session:
        """Return its episode, before the first call."""
        return noisy_session(self.declaration, REGIMES[self.regime], self.schedule)


class Difference(NamedTuple):
    """A call that was answered otherwise."""

    call: int  # its number, from 0
    tool: str  # its tool
    recorded: Json  # the response in the record
    found: Json  # the response now


def read_record(path: Path) -> Record:
    """Read a record, also of a proxy that was killed."""
    *lines, rest = read_bytes(path, LARGEST_ROWS).split(b"\n")
    documents = [_document(path, number, line) for number, line in enumerate(lines, 1)]
    if not documents:
        raise DamagedError("the record has no first line", where=path, remedy="no call was made: play again")
    header = documents[0]
    _check(path, 1, _HEADER, header)
    if header["format"] != FORMAT or not 0 <= header["schedule"] < LIMIT:
        found = f"format {header['format']}, schedule {header['schedule']}"
        raise DamagedError(
            "the record has another format", expected=f"format {FORMAT}", found=found, where=path
        )
    if header["regime"] not in REGIMES:
        raise DamagedError("the record names no regime", found=header["regime"], where=path)
    declaration = declaration_of_document(header["declaration"], path)
    if declaration.sha256 != header["declaration_sha256"]:
        raise DamagedError(
            "the record's declaration is not the one it was made with",
            expected=header["declaration_sha256"],
            found=declaration.sha256,
            where=path,
        )
    calls = documents[1:]
    end = calls.pop() if calls and "end" in calls[-1] else None
    for number, line in enumerate(calls, 2):
        _check(path, number, _CALL | {"whole": dict} if "whole" in line else _CALL, line)
    return Record(path, header["regime"], header["schedule"], declaration, calls, end, bool(rest))


def verify(record: Record) -> Session:
    """Draw every fate of a record anew, from its schedule, and return the episode."""
    session = record.session()
    for number, line in enumerate(record.calls, 2):
        begun = _begun(record, number, session, line)
        whole: Json | None = None
        if isinstance(begun, Begun):
            whole = line.get("whole") or line["answer"]
            shown = finish(session, begun, whole)
        else:
            shown = {"result": result_of(begun)}
        _compare(record, number, line, entry(session, shown, whole))
    if record.end is not None:
        _compare(record, len(record.calls) + 2, record.end, _end(session, record.end["end"]))
    return session


async def play_again(record: Record, command: Sequence[str], patience: float) -> list[Difference]:
    """Make the calls of a record again, on a fresh server under the same noise, and return what differs."""
    session, server = record.session(), Server(command, patience)
    found: list[Difference] = []
    try:
        await server.greet()
        for number, line in enumerate(record.calls):
            begun = _begun(record, number + 2, session, line)
            if isinstance(begun, Begun):
                sent = {"name": line["tool"], "arguments": line["arguments"]}
                message = await server.request("tools/call", sent)
                response: Json = {name: message[name] for name in ("result", "error") if name in message}
                shown = finish(session, begun, response)
            else:
                shown = {"result": result_of(begun)}
            if read_by_agent(shown) != read_by_agent(line["answer"]):
                found.append(Difference(number, line["tool"], line["answer"], shown))
    finally:
        server.stop()
    return found


def _begun(record: Record, number: int, session: Session, line: Json) -> Begun | Json:
    try:
        return session.begin(line["tool"], line["arguments"])
    except (ValueError, TypeError) as error:
        raise DamagedError(
            "no such call can be made", found=error, where=f"{record.path}, line {number}"
        ) from None


def _end(session: Session, why: str) -> Json:
    return {"end": why, "calls": len(session.calls), "faults": len(session.exposures)}


def _compare(record: Record, number: int, line: Json, made: Json) -> None:
    for name in [*made, *(name for name in line if name not in made)]:
        if line.get(name) != made.get(name) or (name in line) != (name in made):
            raise VerificationError(
                f"the record says another {name} than its schedule gives",
                expected=_shortly(made, name),
                found=_shortly(line, name),
                where=f"{record.path}, line {number}",
                remedy="nothing that this record says can be relied on from there",
            )


def _shortly(line: Json, name: str) -> str:
    return json.dumps(line[name])[:200] if name in line else "nothing"


def _document(path: Path, number: int, line: bytes) -> Json:
    try:
        document = json.loads(line)
        if type(document) is dict:
            return document
    except (ValueError, RecursionError):
        pass
    raise DamagedError("the line is no object in JSON", where=f"{path}, line {number}")


def _check(path: Path, number: int, kinds: Mapping[str, type], line: Json) -> None:
    wrong = next((name for name, kind in kinds.items() if type(line.get(name)) is not kind), None)
    if wrong is not None:
        how = "is of another kind" if wrong in line else "is not there"
        raise DamagedError(
            f"the line is none of a record: {wrong} {how}",
            expected=", ".join(kinds),
            where=f"{path}, line {number}",
        )
