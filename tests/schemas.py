"""`python -m tests.schemas`: writes the JSON Schema of what each command prints, from its type."""

import inspect
import json
import types
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from toolkit.documents.outputs import OUTPUTS

FOLDER = Path(__file__).parents[1] / "toolkit" / "documents" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
PLAIN = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    types.NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    object: {},
}
"""Schemas of the types that have no parts."""
WIDTH = 110

Schema = dict[str, Any]


def schema(name: str, document: Any) -> Schema:
    """Return the JSON Schema of a command's document."""
    definitions: dict[str, Schema] = {}
    whole = _schema(document, definitions)
    head: Schema = {"$schema": DIALECT, "$id": file_name(name), "title": title(name)}
    if list(whole) == ["$ref"]:  # an object by itself need not be looked up
        whole = definitions.pop(document.__name__)
    return {**head, **whole, **({"$defs": dict(sorted(definitions.items()))} if definitions else {})}


def title(name: str) -> str:
    return "What a command prints with --json where it fails" if name == "error" else f"toolkit {name} --json"


def file_name(name: str) -> str:
    return f"{name.replace(' ', '-')}.json"


def _schema(kind: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a type; those of its objects are defined once, by name."""
    if kind in PLAIN:
        return dict(PLAIN[kind])
    if is_typeddict(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return _composed(kind, get_origin(kind), get_args(kind), definitions)


def _composed(kind: Any, origin: Any, parts: Any, definitions: dict[str, Schema]) -> Schema:  # noqa: PLR0911 - a case a form
    """Return the schema of a type with parts."""
    if origin is Annotated:
        return {**_schema(parts[0], definitions), "description": parts[1]}
    if origin in (Required, NotRequired):
        return _schema(parts[0], definitions)
    if origin is Literal:
        return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
    if origin in (Union, types.UnionType):
        return _either([_schema(part, definitions) for part in parts])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(parts[1], definitions)}
    if origin is tuple and parts[-1] is not ...:
        members = [_schema(part, definitions) for part in parts]
        return {"type": "array", "prefixItems": members, "items": False, "minItems": len(members)}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": _schema(parts[0], definitions)}
    raise TypeError(f"{kind} has no schema")


def _either(choices: list[Schema]) -> Schema:
    first, *others = choices
    if all(list(choice) == ["type"] for choice in others) and isinstance(first.get("type"), str):
        # What says more, such as the form of a text or the items of a list, says it of that type alone.
        return {**first, "type": [choice["type"] for choice in choices]}
    if others == [PLAIN[types.NoneType]] and "enum" in first:
        return {"enum": [*first["enum"], None]}
    return {"anyOf": choices}


def _object(kind: Any, definitions: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    required = [
        name
        for name, hint in hints.items()
        if get_origin(hint) is not NotRequired and (name in kind.__required_keys__)
    ]
    return {
        "description": inspect.getdoc(kind),
        "type": "object",
        "properties": {name: _schema(hint, definitions) for name, hint in hints.items()},
        "required": required,
        "additionalProperties": False,
    }


def text(value: Any) -> str:
    """Return a schema as it is written: what fits a line stands on one."""
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    flat = json.dumps(value, ensure_ascii=False)
    is_names = isinstance(value, list) and not any(isinstance(part, dict | list) for part in value)
    if not isinstance(value, dict | list) or is_names or not value or len(indent + flat) <= WIDTH:
        yield indent + flat
        return
    first, last = "{}" if isinstance(value, dict) else "[]"
    members = value.items() if isinstance(value, dict) else [(None, member) for member in value]
    yield indent + first
    for number, (key, member) in enumerate(members, 1):
        lines = list(_lines(member, f"{indent} "))
        if key is not None:
            lines[0] = f"{indent} {json.dumps(key)}: {lines[0].lstrip()}"
        lines[-1] += "," if number < len(value) else ""
        yield from lines
    yield indent + last


def every() -> dict[str, str]:
    """Return the schemas of all documents as they are shipped, by the name of their file."""
    return {file_name(name): text(schema(name, document)) for name, document in OUTPUTS.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, content in every().items():
        (FOLDER / file).write_text(content, encoding="utf-8")
