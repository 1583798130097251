"""A document that was made for tests, and the shipped restatement fitted to it.

The document that `prereg/paired-rollouts` restates is its authors', and is no part of the project.
"""

import hashlib
import json
import re
import tomllib
from pathlib import Path

from tests.registrations import rehash
from toolkit.prereg.spans import SPANS, named_spans, read_spans, sentences, span_sha256

FROZEN_DOCUMENT = Path(__file__).parents[2] / "shared/fixtures/published/PREREGISTRATION.md"
DOCUMENT_MISSING = f"THE FROZEN DOCUMENT IS MISSING: there is no {FROZEN_DOCUMENT}; a made one was used"
LINES = 174
_HEADINGS = {50: 3, 84: 4, 103: 5, 121: 6, 129: 7, 135: 8, 142: 9}
_SPAN = re.compile(r'lines = \[(\d+), (\d+)\], sha256 = "[0-9a-f]{64}"')


def made_document() -> bytes:
    """Return a document with the sections of the frozen one on the same lines, and other words."""
    lines = (
        f"## {_HEADINGS[n]}. Section" if n in _HEADINGS else f"Line {n} says one thing. Then it says another."
        for n in range(1, LINES + 1)
    )
    return "".join(f"{line}\n" for line in lines).encode()


def fit_restatement(folder: Path, document: bytes) -> None:
    """Make a copy of the shipped restatement one of another document: its hash, spans and list, all anew."""
    record = folder / "record.toml"
    digest = hashlib.sha256(document).hexdigest()
    record.write_text(re.sub(r'(document_sha256 = )"\w+"', rf'\1"{digest}"', record.read_text()))
    fit_spans(folder, document)
    rehash(folder)


def fit_spans(folder: Path, document: bytes) -> None:
    """Give the spans of a restatement, and its list of what it leaves out, the digests of a document."""
    rules = folder / "rules.toml"

    def again(match: re.Match[str]) -> str:
        first, last = int(match[1]), int(match[2])
        return f'lines = [{first}, {last}], sha256 = "{span_sha256(document, first, last)}"'

    rules.write_text(_SPAN.sub(again, rules.read_text()))
    parsed = tomllib.loads(rules.read_text())
    spans, named = read_spans(parsed[SPANS]), named_spans(parsed)
    covered = {n for name, span in spans.items() if named[name] for n in range(span.first, span.last + 1)}
    listing = folder / "unrestated.toml"
    sections = tomllib.loads(listing.read_text())["sections"]
    entries = [
        f'\n[[sentences]]\nline = {s.line}\nsentence = {s.sentence}\nsha256 = "{s.sha256}"\nwhy = "made"\n'
        for s in sentences(document, sections)
        if s.line not in covered
    ]
    listing.write_text(f"sections = {json.dumps(sections)}\n{''.join(entries)}")
