"""Which words of a timestamped document a restatement stands for: lines of it, by number and SHA-256."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from io import BytesIO
from typing import Annotated, Any

from msgspec import Meta

from toolkit.errors import RuleError
from toolkit.prereg.record import Sha256, Text
from toolkit.structs import Document, about, parse

UNRESTATED = "unrestated.toml"
SPANS = "spans"

_SECTION = re.compile(r"## (\d{1,4})\.")
_TABLE_RULE = re.compile(r"\|[-| :]*\|")
# A full stop ends a sentence where a capital, a quotation or a parenthesis follows.
_END = re.compile(r'(?<=[.?!])\s+(?=[A-Z`("])')

Number = Annotated[int, Meta(ge=1, lt=10**6)]


class Span(Document, frozen=True):
    """Lines of a document."""

    lines: Annotated[tuple[Number, Number], about("The first and the last, from 1.")]
    sha256: Annotated[Sha256, about("Of their bytes, line ends included, as recorded.")]

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ValueError(f"line {self.first} comes after line {self.last}")

    @property
    def first(self) -> int:
        """The first line."""
        return self.lines[0]

    @property
    def last(self) -> int:
        """The last line, which is included."""
        return self.lines[1]

    @property
    def place(self) -> str:
        """The lines in words."""
        return f"line {self.first}" if self.first == self.last else f"lines {self.first} to {self.last}"


class Sentence(Document, frozen=True):
    """A sentence of a document: a row of a table is one; headings are none."""

    line: Number
    sentence: Annotated[Number, about("Which one of that line.")]
    sha256: Annotated[Sha256, about("Of its words.")]

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"line {self.line}, sentence {self.sentence}"


class Omission(Sentence, frozen=True):
    """A sentence that no rule restates."""

    why: Text


class Unrestated(Document, frozen=True):
    """What a restatement leaves out."""

    sections: Annotated[
        tuple[Number, ...], about("Sections of the document of which every sentence is accounted for.")
    ]
    sentences: tuple[Omission, ...]

    def __post_init__(self) -> None:
        if len(self.why) != len(self.sentences):
            raise ValueError("a sentence is listed twice")

    @property
    def why(self) -> dict[Sentence, str]:
        """Sentence → why no rule restates it."""
        return {Sentence(each.line, each.sentence, each.sha256): each.why for each in self.sentences}


def span_bytes(document: bytes, first: int, last: int) -> bytes:
    """Return lines of a document, line ends included; nothing where it has no such lines."""
    return b"".join(BytesIO(document).readlines()[first - 1 : last])


def span_sha256(document: bytes, first: int, last: int) -> str:
    """Return the SHA-256 of lines of a document, as a span records it."""
    return sha256(span_bytes(document, first, last)).hexdigest()


def span_text(document: bytes, span: Span) -> str | None:
    """Return the words of a span; None where these lines are not the recorded ones."""
    content = span_bytes(document, span.first, span.last)
    return content.decode(errors="replace") if sha256(content).hexdigest() == span.sha256 else None


def read_spans(table: object) -> dict[str, Span]:
    """Read the table of spans of a rules file, by name."""
    return parse(dict[str, Span], table, "a span is malformed", SPANS, error=RuleError)


def named_spans(rules: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what names each span of a rules file, such as `rules.H2a`."""
    namers: dict[str, list[str]] = {name: [] for name in rules.get(SPANS, {})}
    for item, names in _namers({key: value for key, value in rules.items() if key != SPANS}, ""):
        for name in names:
            namers.setdefault(name, []).append(item)
    return namers


def sentences(document: bytes, sections: tuple[int, ...]) -> list[Sentence]:
    """Return the sentences of numbered sections of a document in Markdown, in their order."""
    found: list[Sentence] = []
    section = None
    lines = document.decode(errors="replace").split("\n")
    for number, line in enumerate(lines, start=1):
        heading = _SECTION.match(line)
        section = int(heading[1]) if heading else section
        is_heading = line.startswith("#") or _TABLE_RULE.fullmatch("".join(lines[number : number + 1]))
        if section in sections and line.strip() and not is_heading and not _TABLE_RULE.fullmatch(line):
            digests = (sha256(words.encode()).hexdigest() for words in _END.split(line))
            found += [Sentence(number, order, digest) for order, digest in enumerate(digests, start=1)]
    return found


def differences(document: bytes, rules: str, unrestated: Unrestated | None) -> list[str]:
    """Compare the spans of rules, and the list of what they leave out, with the document they restate."""
    parsed = tomllib.loads(rules)
    spans, namers = read_spans(parsed.get(SPANS, {})), named_spans(parsed)
    problems = [
        f"{items[0]} names span {name}, which is not declared"
        for name, items in namers.items()
        if name not in spans
    ]
    problems += [
        f"span {name} ({span.place}), restated by {', '.join(namers[name]) or 'nothing'}: expected SHA-256 "
        f"{span.sha256}, found {digest}"
        for name, span in spans.items()
        if (digest := span_sha256(document, span.first, span.last)) != span.sha256
    ]
    if unrestated is None:
        return problems
    covered = {
        line for name, span in spans.items() if namers[name] for line in range(span.first, span.last + 1)
    }
    there, why = sentences(document, unrestated.sections), unrestated.why
    problems += [
        f"{sentence.place}: no span has it, and {UNRESTATED} does not name it"
        for sentence in there
        if sentence.line not in covered and sentence not in why
    ]
    gone = [sentence for sentence in why if sentence not in set(there)]
    return problems + [f"{UNRESTATED} names {sentence.place}, which says something else" for sentence in gone]


def spans_told(rules: str, unrestated: Unrestated | None) -> str:
    """Return in words what `differences` compared, where it found none."""
    spans = tomllib.loads(rules).get(SPANS, {})
    if not spans:
        return "they do not say which lines of it they restate"
    if unrestated is None:
        return f"its {len(spans)} spans that they name have the recorded bytes"
    sections = ", ".join(map(str, unrestated.sections))
    return (
        f"its {len(spans)} spans that they name have the recorded bytes, and every sentence of its sections "
        f"{sections} is in one of them or among the {len(unrestated.sentences)} that {UNRESTATED} lists"
    )


def _namers(content: object, where: str) -> Iterator[tuple[str, list[str]]]:
    """Yield every table that names spans, and the names."""
    if isinstance(content, list):
        for number, entry in enumerate(content, start=1):
            yield from _namers(entry, f"{where}[{number}]")
    if isinstance(content, dict):
        names = content.get(SPANS)
        if isinstance(names, list):
            yield where, [name for name in names if isinstance(name, str)]
        for key, value in content.items():
            yield from _namers(value, f"{where}.{key}" if where else key)
