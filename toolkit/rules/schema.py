"""JSON Schemas of a rules file and of an amendment, made of their types, for editors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec

from toolkit.registers.columns import Type
from toolkit.registers.schema import RUNS
from toolkit.rules.endpoints import Checkpoint, IntervalSpec
from toolkit.rules.plan import Columns
from toolkit.rules.rulebook import COMMON, AmendmentFile, RulesFile
from toolkit.rules.sections import DECIMAL, Formula, Range, Table
from toolkit.structs import Document

FILES: dict[str, type[Document]] = {"rules": RulesFile, "amendment": AmendmentFile}
DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

_TEXT = {"type": "string", "minLength": 1}
_EXACT = {"type": "string", "pattern": f"^(?:{DECIMAL.pattern})$"}
_WRITTEN: dict[type, Schema] = {
    Fraction: _EXACT,
    Range: {"type": "array", "items": _EXACT, "minItems": 2, "maxItems": 2},
    Formula: _TEXT,
    Checkpoint: _TEXT,
    Columns: {
        "type": "object",
        "properties": {
            column.name: {
                "description": column.meaning,
                **(
                    {"anyOf": [{"type": "number"}, _EXACT]}
                    if column.type.is_number
                    else {"type": ["string", "number"]}
                ),
            }
            for column in RUNS.columns
            if column.type is Type.STRING or column.type.is_number
        },
        "additionalProperties": False,
    },
}
"""Types that are not parsed as JSON has them, and how they are written."""


def json_schema(name: str) -> Schema:
    """Return the JSON Schema (2020-12) of a file."""
    kind = FILES[name]
    _, parts = msgspec.json.schema_components(
        (kind,), schema_hook=_WRITTEN.__getitem__, ref_template="#/$defs/{name}"
    )
    parts = {part: _tidied(schema) for part, schema in parts.items()}
    for table in _tables(Table):
        if table.__name__ in parts:
            _restrict(parts[table.__name__], table)
    if name == "rules":
        _make_common(parts)
    whole = parts.pop(kind.__name__)
    keys = whole["properties"]
    whole["properties"] = {key: keys[key] for key in (*kind.__annotations__, *keys)}
    return {"$schema": DIALECT, "$id": f"{name}.json", **whole, "$defs": parts}


def _tables(kind: type[Table]) -> list[type[Table]]:
    return [kind, *(table for child in kind.__subclasses__() for table in _tables(child))]


def _tidied(schema: Any) -> Any:
    """Return a schema without null, which TOML does not have, and without defaults that say nothing."""
    if isinstance(schema, list | tuple):
        return [_tidied(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _tidied(part) for key, part in schema.items() if key != "default" or part}
    if made.get("anyOf", [])[1:] == [{"type": "null"}]:
        made |= made.pop("anyOf")[0]
    if "enum" in made:
        made.pop("pattern", None)
    if "pattern" in made:
        made["pattern"] = made["pattern"].replace(r"\A", "^").replace(r"\Z", "$").replace("(?a:", "(?:")
        made["pattern"] = made["pattern"].replace("(?s:.)", r"[\s\S]")
    return made


def _restrict(schema: Schema, table: type[Table]) -> None:
    """Leave out fields that are no keys, and say which keys go with what another key says."""
    for name in table.derived:
        schema["properties"].pop(name, None)
    conditions = []
    for key, (other, values) in table.only.items():
        said = {"properties": {other: {"enum": [value for value in values if value]}}}
        conditions.append(
            {
                "if": said if "" in values else {**said, "required": [other]},
                **({} if key in table.optional else {"then": {"required": [key]}}),
                "else": {"properties": {key: False}},
            }
        )
    if conditions:
        schema["allOf"] = conditions


def _make_common(parts: dict[str, Schema]) -> None:
    """Let intervals lack what a table says of all of them, where there is one."""
    whole, rules = IntervalSpec.__name__, parts[RulesFile.__name__]
    conditions = [
        {**each, "if": {"properties": each["if"]["properties"]}, "then": True}
        for each in parts[whole]["allOf"]
    ]
    parts["CommonInterval"] = {**parts[whole], "required": [], "allOf": conditions}
    some, each = ({"$ref": f"#/$defs/{name}"} for name in ("CommonInterval", whole))
    for name in COMMON:
        rules["properties"][name] = {"description": rules["properties"][name]["description"], **some}
    rules["properties"]["intervals"]["additionalProperties"] = some
    rules["if"] = {"not": {"anyOf": [{"required": [name]} for name in COMMON]}}
    rules["then"] = {"properties": {"intervals": {"additionalProperties": each}}}
