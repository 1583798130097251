"""Write what the guide generates from the code: commands, keys of rules.toml, JSON documents, the Python API.

python -m tests.guide            write GUIDE.md
python -m tests.guide --check    say whether it is what the code gives
"""

import inspect
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator

import click

import toolkit
from tests.conftest import CHECKOUT, run
from tests.rules_schema import rules_reference
from toolkit.cli.main import GROUPS, cli
from toolkit.cli.schemas import OUTPUTS
from toolkit.registers.importing.reading import READERS

DOCUMENTS = (CHECKOUT / "README.md", CHECKOUT / "GUIDE.md")
BLOCK = re.compile(r"<!-- (?P<what>[\w: ]+) -->\n.*?<!-- end -->", re.DOTALL)
_EXCERPT = re.compile(
    r"^```\n\$ (?P<line>toolkit [^\n|]+?)(?P<head> \| head -n (?P<lines>\d+))?\n.*?^```",
    re.DOTALL | re.MULTILINE,
)
_DIRECTIVES = ("Args", "Returns", "Raises", "Yields", "Examples", "Source")


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command below a group with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def generated(text: str) -> str:
    """Return a document with every generated block as the code gives it."""
    return _EXCERPT.sub(_printed, BLOCK.sub(lambda found: _block(found["what"]), text))


def _printed(found: re.Match[str]) -> str:
    """Return a block with what its command prints where there is no terminal."""
    lines = run(*shlex.split(found["line"])[1:], columns=None).out.splitlines()
    shown = lines[: int(found["lines"])] if found["lines"] else lines
    text = "\n".join(line.rstrip() for line in shown)
    return f"```\n$ {found['line']}{found['head'] or ''}\n{text}\n```"


def _block(what: str) -> str:
    kind, _, group = what.partition(": ")
    made = {
        "commands": lambda: _commands(group),
        "formats": _formats,
        "rules": rules_reference,
        "outputs": _outputs,
        "python": _python,
    }[kind]()
    return f"<!-- {what} -->\n\n{made.strip()}\n\n<!-- end -->"


def _commands(group: str) -> str:
    parts = []
    for name in GROUPS[group]:
        top = cli.get_command(click.Context(cli), name)
        assert top is not None, name
        each = commands(top, (name,)) if isinstance(top, click.Group) else [((name,), top)]
        parts += [_command(" ".join(path), command) for path, command in each]
    return "\n\n".join(parts)


def _command(name: str, command: click.Command) -> str:
    """Return a command: its words, and its examples as a block."""
    words, examples = [], []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines = [line.rstrip() for line in paragraph.replace("\b", "").strip("\n").split("\n")]
        if lines[0].strip() == "Examples:":
            examples = [line.strip() for line in lines[1:]]
        elif "\b" in paragraph:
            words.append("```\n" + textwrap.dedent("\n".join(lines)) + "\n```")
        else:
            words.append(" ".join(line.strip() for line in lines))
    block = "```sh\n" + "\n".join(examples) + "\n```"
    return "\n\n".join([f"### {name}", *words, block])


def _formats() -> str:
    return "\n".join(
        ["| log | what is read |", "| --- | --- |", *(f"| {one.name} | {one.sources} |" for one in READERS)]
    )


def _outputs() -> str:
    listed = " · ".join(f"`{name}`" for name in OUTPUTS)
    return (
        "Each document has a JSON Schema, which `toolkit schema NAME` prints. "
        f"`error` is what every command prints on stdout with `--json` when it fails.\n\n{listed}"
    )


def _python() -> str:
    functions, classes = [], []
    for name in toolkit.__all__:
        public = getattr(toolkit, name)
        if inspect.isfunction(public):
            functions.append(_function(name, public))
        elif inspect.isclass(public) and not issubclass(public, Exception):
            classes.append(_class(name, public))
    estimators = [
        _row(name, getattr(toolkit.estimators, name)) for name in sorted(toolkit.estimators.__all__)
    ]
    table = "\n".join(["| estimator | what it gives |", "| --- | --- |", *estimators])
    return "\n\n".join([*functions, *classes, "### toolkit.estimators", table])


def _function(name: str, function: object) -> str:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    return f"### toolkit.{name}\n\n```python\n{name}{_plain(signature)}\n```\n\n{_words(function)}"


def _class(name: str, made: type) -> str:
    members = [
        _row(member, getattr(made, member))
        for member in vars(made)
        if not member.startswith("_") and inspect.getdoc(getattr(made, member)) and member in _told(made)
    ]
    table = "\n".join(["| member | what it gives |", "| --- | --- |", *members]) if members else ""
    return "\n\n".join(part for part in (f"### toolkit.{name}", _words(made), table) if part)


def _told(made: type) -> set[str]:
    """Return the methods and properties of a class, not its fields."""
    return {
        name
        for name, member in vars(made).items()
        if callable(member) or isinstance(member, property | classmethod | staticmethod)
    }


def _row(name: str, public: object) -> str:
    first = (inspect.getdoc(public) or "").split("\n\n")[0]
    return f"| `{name}` | {' '.join(first.split()).replace('|', chr(92) + '|')} |"


def _words(public: object) -> str:
    """Return a docstring as Markdown: prose as it is, its sections as lists."""
    parts = []
    for paragraph in (inspect.getdoc(public) or "").split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if head.rstrip(":") in _DIRECTIVES and head.endswith(":"):
            body = textwrap.dedent(rest)
            if head == "Examples:":
                parts.append("```python\n" + body.replace("  # doctest: +SKIP", "") + "\n```")
            elif head in ("Returns:", "Yields:", "Source:"):
                parts.append(f"*{head}* {' '.join(body.split())}")
            else:
                parts.append(f"*{head}*\n\n" + "\n".join(_items(body)))
        else:
            parts.append(" ".join(paragraph.split()))
    return "\n\n".join(parts)


def _items(body: str) -> Iterator[str]:
    """Yield the entries of a docstring's section as a Markdown list."""
    entry: list[str] = []
    for line in body.split("\n"):
        if line.startswith(" ") and entry:
            entry.append(line.strip())
            continue
        if entry:
            yield "- " + " ".join(entry)
        entry = [line.strip()]
    if entry:
        yield "- " + " ".join(entry)


def _plain(signature: inspect.Signature) -> str:
    return str(signature).replace("'", "")


def main() -> None:
    """Write the documents, or say that they are not what the code gives."""
    stale = []
    for document in DOCUMENTS:
        before = document.read_text(encoding="utf-8")
        after = generated(before)
        if after != before and "--check" not in sys.argv:
            document.write_text(after, encoding="utf-8")
        elif after != before:
            stale.append(document.name)
    sys.exit(
        f"{' and '.join(stale)}: not what the code gives; python -m tests.guide writes it" if stale else 0
    )


if __name__ == "__main__":
    main()
