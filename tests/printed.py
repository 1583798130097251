"""What commands print with `--json`, held against the schema of their document."""

import json
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from toolkit.cli.schemas import ERROR, OUTPUTS, json_schema

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

FOLDED = {
    ("site build", "--check"): "site check",
    ("study run", "--status"): "study status",
    ("probe drift", "--advise"): "probe advise",
    ("pools list", "--task"): "pools show",
    ("pools list", "--verify"): "pools verify",
    ("episode play", "--recorded"): "episode replay",
    ("backoffice mcp", "--schema"): "backoffice schema",
    ("schema", "--registers"): "registers schema",
    ("noise inspect", "--verify"): "pairing verify",
    ("noise inspect", "--replay"): "noise replay",
    ("reproduce", "--card"): "registers card",
    ("reproduce", "--published"): "registers build",
    ("noise inspect", ""): "pairing inspect",
}
"""A command and an option → the command that the option was, whose name its document keeps."""
SAMPLE = 25
"""Members that are examined of a long list: the first, as many again of the last, and some between."""


@cache
def validator(name: str) -> "Draft202012Validator":
    """Return what examines the documents of a command; its schema is one."""
    from jsonschema import Draft202012Validator

    made = json_schema(name)
    Draft202012Validator.check_schema(made)
    return Draft202012Validator(made)


def command_of(arguments: tuple[str, ...]) -> str | None:
    """Return the command that arguments ask for a document of; None where they ask for none."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" not in before:
        return None
    before = before[1:] if before[0] == "lab" else before
    for (name, option), hidden in FOLDED.items():
        if " ".join(before).startswith(name) and (not option or option in before):
            return hidden
    return next((name for name in (" ".join(before[:2]), before[0]) if name in OUTPUTS), None)


def document_name(path: str) -> str:
    """Return the name that a listed command's document has had since before it moved."""
    return FOLDED.get((path, ""), path.removeprefix("lab "))


def check_document(arguments: tuple[str, ...], printed: str) -> None:
    """Check what a command printed against its schema; what is no document is its test's own affair."""
    name = command_of(arguments)
    # The environments with other majors run the same tests without the package, after this one.
    if name is None or not printed or find_spec("jsonschema") is None:
        return
    try:
        document = json.loads(printed)
    except ValueError:
        return
    check(ERROR if isinstance(document, dict) and list(document) == [ERROR] else name, document)


def check(name: str, document: Any) -> None:
    """Check a document against the schema of its command."""
    from jsonschema.exceptions import best_match

    wrong = best_match(validator(name).iter_errors(bounded(document)))
    assert wrong is None, f"{name} at {wrong.json_path}: {wrong.message[:500]}"


def bounded(document: Any) -> Any:
    """Return a document whose long lists are shortened."""
    if isinstance(document, dict):
        return {key: bounded(value) for key, value in document.items()}
    if isinstance(document, list):
        step = max(1, (len(document) - 2 * SAMPLE) // SAMPLE)
        kept = [*document[:SAMPLE], *document[SAMPLE:-SAMPLE:step], *document[-SAMPLE:]]
        return [bounded(member) for member in (kept if len(document) > 3 * SAMPLE else document)]
    return document
