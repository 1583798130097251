"""A record of an episode over the Model Context Protocol: JSON lines, each written before it is answered.

The first line says under what noise the calls were made, the last how it ended; between them stands a line a
call. A proxy that is killed leaves no last line, and at most half of the line that it was writing.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import toolkit
from toolkit.errors import DamagedError, VerificationError
from toolkit.files import LARGEST_ROWS, read_bytes
from toolkit.noise.declaration import Declaration, DeclarationDocument, declaration_of
from toolkit.noise.mcp.server import Server
from toolkit.noise.regimes import REGIMES, Regime
from toolkit.noise.session import Session, StartedCall
from toolkit.noise.tools import Fault
from toolkit.seeds import LIMIT
from toolkit.structs import UNSET, Document, UnsetType, about, as_builtins, parse

INVALID = "a line of the record is invalid"
Json = dict[str, Any]


def noisy_session(declaration: Declaration, regime: Regime, schedule_seed: int) -> Session:
    """Return an episode whose answers are results of calls."""
    return Session(declaration, regime, schedule_seed, changed)


def finish(session: Session, begun: StartedCall, response: Json) -> Json:
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


class Header(Document, frozen=True):
    """The first line of a record."""

    format: Literal[1]
    toolkit: Annotated[str, about("Version of this package.")]
    regime: str
    schedule: Annotated[int, about("Seed of the schedule ω.", ge=0)]
    declaration_sha256: str
    declaration: DeclarationDocument
    proposed: Annotated[bool, about("Whether nobody has confirmed the declaration.")]
    server: Json

    def __post_init__(self) -> None:
        if self.regime not in REGIMES or self.schedule >= LIMIT:
            raise ValueError("an unknown regime, or a schedule of 2^64 or more")


class Drawn(Document, frozen=True):
    """The draw of an event key."""

    gate: float
    type: float
    magnitude: float


class CallLine(Document, frozen=True):
    """A call."""

    call: Annotated[int, about("Its number, from 0.")]
    tool: str
    arguments: Json
    key: tuple[str, int] | None
    draw: Drawn | None
    fault: Fault | None
    blocked_by: Fault | None
    changed: bool
    answer: Json
    whole: Annotated[Json | UnsetType, about("What the server answered, if shown otherwise.")] = UNSET


class EndLine(Document, frozen=True):
    """The last line: how the episode ended."""

    end: str
    calls: int
    faults: int


class Recorder:
    """Writes a record; `proposed` says that nobody has confirmed the declaration."""

    def __init__(self, path: Path, session: Session, server: Json, *, proposed: bool) -> None:
        self._stream = path.open("wb")
        self._session = session
        declared = session.declaration
        self.write(
            Header(
                format=1,
                toolkit=toolkit.__version__,
                regime=session.regime.name,
                schedule=session.schedule.seed,
                declaration_sha256=declared.sha256,
                declaration=declared.document(),
                proposed=proposed,
                server=server,
            )
        )

    def close(self, why: str) -> None:
        """Add the last line, which says how the episode ended."""
        with self._stream:
            self.write(_end(self._session, why))

    def write(self, line: Header | CallLine | EndLine) -> None:
        """Add a line."""
        self._stream.write(json.dumps(as_builtins(line)).encode() + b"\n")
        self._stream.flush()


def entry(session: Session, shown: Json, whole: Json | None) -> CallLine:
    """Return the line of an episode's last call."""
    call = session.calls[-1]
    drawn = None if call.key is None else session.schedule.draw(call.tool, *call.key)
    return CallLine(
        call=len(session.calls) - 1,
        tool=call.tool,
        arguments=dict(call.arguments),
        key=call.key,
        draw=None if drawn is None else Drawn(drawn.gate, drawn.type, drawn.magnitude),
        fault=call.fault,
        blocked_by=call.blocked_by,
        changed=call.fault is not None and session.exposures[-1].changed,
        answer=shown,
        whole=UNSET if whole is None or shown is whole else whole,
    )


@dataclass(frozen=True)
class Record:
    """A record as it was read."""

    path: Path  # its file
    regime: str  # name of the noise
    schedule: int  # seed of the schedule ω
    declaration: Declaration  # what was known of the tools
    calls: Sequence[CallLine]
    end: EndLine | None  # None where it is missing
    is_cut: bool  # whether half a line follows the last whole one

    def session(self) -> Session:
        """Return its episode, before the first call."""
        return noisy_session(self.declaration, REGIMES[self.regime], self.schedule)


class Difference(Document, frozen=True):
    """A call that a fresh server answered otherwise."""

    call: Annotated[int, about("Its number, from 0.")]
    tool: Annotated[str, about("Name of the tool.")]
    recorded: Annotated[Json, about("The response in the record.")]
    found: Annotated[Json, about("The response now.")]


class NoiseReplayDocument(Document, frozen=True):
    """A record of calls, each fate of which was drawn anew."""

    verdict: Annotated[
        Literal["verified"], about("Of the fates; `differences` says what a fresh server answered.")
    ]
    regime: Annotated[str, about("The noise.")]
    schedule: Annotated[int, about("Seed of the schedule.")]
    calls: Annotated[int, about("How many calls.")]
    faults: Annotated[int, about("How many faults landed.")]
    end: Annotated[str | None, about("How the record ends; null where its last line is missing.")]
    is_cut: Annotated[bool, about("Whether half a line follows the last whole one.")]
    differences: Annotated[list[Difference] | None, about("Null without a fresh server.")]


def read_record(path: Path) -> Record:
    """Read a record, also of a proxy that was killed."""
    *lines, rest = read_bytes(path, LARGEST_ROWS).split(b"\n")
    documents = [_document(path, number, line) for number, line in enumerate(lines, 1)]
    if not documents:
        raise DamagedError("the record has no first line", where=path, remedy="no call was made: play again")
    header = parse(Header, documents[0], INVALID, f"{path}, line 1")
    declaration = declaration_of(header.declaration)
    if declaration.sha256 != header.declaration_sha256:
        raise DamagedError(
            "the record's declaration is not the one it was made with",
            expected=header.declaration_sha256,
            found=declaration.sha256,
            where=path,
        )
    last = documents.pop() if len(documents) > 1 and "end" in documents[-1] else None
    end = None if last is None else parse(EndLine, last, INVALID, f"{path}, line {len(documents) + 1}")
    calls = [parse(CallLine, line, INVALID, f"{path}, line {n}") for n, line in enumerate(documents[1:], 2)]
    return Record(path, header.regime, header.schedule, declaration, calls, end, bool(rest))


def verify(record: Record) -> Session:
    """Draw every fate of a record anew, from its schedule, and return the episode."""
    session = record.session()
    for number, line in enumerate(record.calls, 2):
        begun = _started(record, number, session, line)
        whole: Json | None = None
        if isinstance(begun, StartedCall):
            whole = line.whole or line.answer
            shown = finish(session, begun, whole)
        else:
            shown = {"result": result_of(begun)}
        _compare(record, number, line, entry(session, shown, whole))
    if record.end is not None:
        _compare(record, len(record.calls) + 2, record.end, _end(session, record.end.end))
    return session


async def play_again(record: Record, command: Sequence[str], patience: float) -> list[Difference]:
    """Make the calls of a record again, on a fresh server under the same noise, and return what differs."""
    session, server = record.session(), Server(command, patience)
    found: list[Difference] = []
    try:
        await server.greet()
        for number, line in enumerate(record.calls):
            begun = _started(record, number + 2, session, line)
            if isinstance(begun, StartedCall):
                sent = {"name": line.tool, "arguments": line.arguments}
                message = await server.request("tools/call", sent)
                response: Json = {name: message[name] for name in ("result", "error") if name in message}
                shown = finish(session, begun, response)
            else:
                shown = {"result": result_of(begun)}
            if read_by_agent(shown) != read_by_agent(line.answer):
                found.append(Difference(number, line.tool, line.answer, shown))
    finally:
        server.stop()
    return found


def _started(record: Record, number: int, session: Session, line: CallLine) -> StartedCall | Json:
    try:
        return session.begin(line.tool, line.arguments)
    except (ValueError, TypeError) as error:
        raise DamagedError(
            "no such call can be made", found=error, where=f"{record.path}, line {number}"
        ) from None


def _end(session: Session, why: str) -> EndLine:
    return EndLine(why, len(session.calls), len(session.exposures))


def _compare(record: Record, number: int, line: CallLine | EndLine, made: CallLine | EndLine) -> None:
    found, expected = as_builtins(line), as_builtins(made)
    for name in {**expected, **found}:
        if found.get(name) != expected.get(name) or (name in found) != (name in expected):
            raise VerificationError(
                f"the record says another {name} than its schedule gives",
                expected=_shortly(expected, name),
                found=_shortly(found, name),
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
