"""Transcripts: commands with what they print, a topic or a journey each, in the `*.md` beside this file.

A block ```LANGUAGE FILE writes a file into an empty folder; a block ```console gives commands there, one
after the other, in this process. `Place: NAME` before the first block names the fixture that makes the folder
a home (`conftest.py`); without it, the home is the checkout. Below a command stands what it prints, first on
stdout, then on stderr: `…` within a line is any text, and as a line any lines. `[N]` is the exit code where
it isn't 0; `[N] TEXT` a command that printed one error, which has TEXT, and nothing else.

Other commands than `toolkit` and `NAME=VALUE` are a shell's, or one of `conftest.TOOLS`. `toolkit … | json
PATH…` prints values of the document, a line each: `0.verdict`, `*.rule` of all, `"absent"` where there is
none. `< FILE` and `> FILE` work; `$CHECKOUT`, `$PWD` and what the place sets are replaced in commands, and
the first two in what is printed.

`python -m tests.transcripts --update [NAME…]` writes what is printed now, and leaves `…` where it still fits.
"""

import contextlib
import difflib
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Result, run
from tests.transcripts.conftest import TOOLS

FOLDER = Path(__file__).parent
FILES = {str(path.relative_to(FOLDER).with_suffix("")): path for path in sorted(FOLDER.rglob("*.md"))}
ITEMS = [pytest.param(name, marks=pytest.mark.slow if name.startswith("slow") else ()) for name in FILES]
UPDATE = "UPDATE_TRANSCRIPTS"
ANY = "…"
BLOCK = re.compile(r"^```\w+(?P<file> \S+)?\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
REFUSED = re.compile(r"\[(?P<code>\d+)\] (?P<text>.+)")


@dataclass(frozen=True)
class Command:
    """A command of a transcript."""

    line: str
    expected: list[str]
    at: slice
    """The expected lines, in the transcript."""


def commands(text: str, block: re.Match[str]) -> Iterator[Command]:
    """Yield the commands of a block."""
    lines = block["body"].splitlines()
    above = text.count("\n", 0, block.start("body"))
    begins = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    for at, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        last = at
        while lines[last].endswith("\\"):
            last += 1
        line = " ".join(part.removesuffix("\\").strip() for part in lines[at : last + 1])
        yield Command(line[2:], lines[last + 1 : end], slice(above + last + 1, above + end))


def result(line: str) -> Result:
    """Run a command: one of the toolkit in this process, another one in a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    words = list(lexer)
    if words[0] in TOOLS:
        return TOOLS[words[0]](*words[1:]) or Result(0, "", "")
    if words[0] != "toolkit":
        return piped(line, "")
    words = [os.path.expandvars(word) for word in words[1:]]
    words, then = (words[: words.index("|")], words[words.index("|") + 1 :]) if "|" in words else (words, [])
    into = words.pop() if words[-2:-1] == [">"] else None
    given = words.pop() if words[-2:-1] == ["<"] else None
    words = [word for word in words if word not in ("<", ">")]
    with contextlib.ExitStack() as stack:
        if given:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr("sys.stdin", stack.enter_context(Path(given).open(encoding="utf-8")))
        done = run(*words)
    if into:
        Path(into).write_text(done.out, encoding="utf-8")
        done = Result(done.code, "", done.err)
    if then[:1] == ["json"]:
        picked = (pick(json.loads(done.out), path) for path in then[1:])
        return Result(done.code, "".join(json.dumps(v, ensure_ascii=False) + "\n" for v in picked), done.err)
    if then:
        after = piped(shlex.join(then), done.out)
        return Result(done.code or after.code, after.out, done.err + after.err)
    return done


def piped(line: str, given: str) -> Result:
    done = subprocess.run(["/bin/sh", "-c", line], input=given, capture_output=True, text=True, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def pick(value: Any, path: str) -> Any:
    """Return a value of a document by its path."""
    name, _, rest = path.partition(".")
    if not name:
        return value
    if name == "*":
        return [pick(each, rest) for each in (value.values() if isinstance(value, dict) else value)]
    if isinstance(value, list):
        return pick(value[int(name)], rest)
    return pick(value[name], rest) if name in (value or ()) else "absent"


def pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, line.split(ANY))))


def is_refusal(expected: list[str], done: Result) -> bool:
    """Whether one line is expected to refuse the command, and it is refused so."""
    found = REFUSED.fullmatch(expected[0]) if len(expected) == 1 else None
    if not found:
        return False
    try:
        done.refused(int(found["code"]), *found["text"].split(ANY))
    except AssertionError:
        return False
    return True


def printed(done: Result, here: Path) -> tuple[list[str], list[str]]:
    """Return the lines that a command printed, and the one with its exit code."""
    text = done.out + ("\n" if done.out and not done.out.endswith("\n") else "") + done.err
    text = text.replace(str(here), "$PWD").replace(str(CHECKOUT), "$CHECKOUT")
    return [line.rstrip() for line in text.splitlines()], [f"[{done.code}]"] if done.code else []


def merged(expected: list[str], lines: list[str]) -> list[str]:
    """Return what is printed, with `…` where it still fits; that is what is expected if all does."""
    made: list[str] = []
    at, skip = 0, False
    for want in expected:
        if want == ANY:
            skip = True
            continue
        matching = pattern(want).fullmatch
        found = next((i for i in range(at, len(lines)) if matching(lines[i])), None)
        if found is None:
            continue
        made += [ANY] if skip else lines[at:found]
        made.append(want)
        at, skip = found + 1, False
    return [*made, *([ANY] if skip else lines[at:])]


def test_update_leaves_what_still_fits() -> None:
    lines = ["a 1", "b", "c", "d", "e"]
    assert merged(["a …", "…", "d", "…"], lines) == ["a …", "…", "d", "…"]
    assert merged(["a …", "x", "d", "…"], lines) == ["a …", "b", "c", "d", "…"]
    assert merged([], lines) == lines
    assert merged(["b", "…"], []) == ["…"]


def differing(text: str, here: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[Command, list[str]]]:
    """Yield the commands that print something else than is expected, with what should be."""
    for block in BLOCK.finditer(text):
        if block["file"]:
            path = here / block["file"].strip()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["body"], encoding="utf-8")
            continue
        for command in commands(text, block):
            if re.fullmatch(r"[A-Z_]+=\S*", command.line):
                patch.setenv(*command.line.split("="))
                continue
            done = result(command.line)
            lines, code = printed(done, here)
            has_code = bool(command.expected) and re.fullmatch(r"\[\d+\]", command.expected[-1])
            made = merged(command.expected[: -1 if has_code else None], lines) + code
            if made != command.expected and not is_refusal(command.expected, done):
                yield command, made


@pytest.mark.parametrize("name", ITEMS)
def test_transcript(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    text = FILES[name].read_text(encoding="utf-8")
    place = re.search(r"^Place: (\w+)$", text.partition("```")[0], re.MULTILINE)
    if place:
        request.getfixturevalue(place[1])
    for variable, value in (("PWD", tmp_path), ("CHECKOUT", CHECKOUT), ("HERE", FOLDER)):
        monkeypatch.setenv(variable, str(value))
    monkeypatch.chdir(tmp_path)
    lines = text.splitlines()
    wrong = list(differing(text, tmp_path, monkeypatch))
    for command, made in reversed(wrong):
        lines[command.at] = made
    if wrong and os.environ.get(UPDATE):
        FILES[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif wrong:
        diff = difflib.unified_diff(text.splitlines(), lines, "expected", "printed", lineterm="")
        pytest.fail("\n".join(diff), pytrace=False)
