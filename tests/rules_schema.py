"""The keys of rules and amendments, and the language of tests, in Markdown, made of the JSON Schemas."""

from collections.abc import Iterator
from typing import Any

from toolkit.rules.expressions import ARITHMETIC, COMPARISONS, OPERATORS
from toolkit.rules.schema import json_schema

Schema = dict[str, Any]

SCHEMAS = {f"{name}.json": json_schema(name) for name in ("rules", "amendment")}
PARTS: Schema = SCHEMAS["amendment.json"]["$defs"] | SCHEMAS["rules.json"]["$defs"]
TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false", "number": "number"}
COMMON = ("interval_method", "interval_conventions", "training", "fixed")
"""Tables whose keys are those of another one, or columns of `runs`."""


def rules_reference() -> str:
    """Return every key of a rules file and of an amendment, and the language of tests, in Markdown."""
    rules, amendment = SCHEMAS.values()
    shared = ", ".join(f"`{name}`" for name in amendment["properties"] if name in rules["properties"])
    parts = ["### `rules.toml`\n", _table(rules), *_sections(rules, "")]
    parts += ["### An amendment\n", f"Beside `[amendment]` it has, as `rules.toml` does, {shared}.\n"]
    parts += ["#### `[amendment]`\n", _table(PARTS["AmendmentHead"]), "### Tests and formulas\n", _language()]
    return "\n".join(parts)


def _part(schema: Schema) -> Schema:
    return PARTS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _sections(table: Schema, path: str) -> Iterator[str]:
    """Yield the sections of the tables in a table, from the top down."""
    for key, schema in table["properties"].items():
        listed, named = schema.get("items", {}), schema.get("additionalProperties") or {}
        inner = _part(listed or named or schema)
        if key in COMMON or "properties" not in inner:
            continue
        name = f"{path}{key}{'.NAME' if named else ''}"
        yield f"#### `{f'[[{name}]]' if listed else f'[{name}]'}`\n\n{_upper(schema['description'])}.\n"
        yield _table(PARTS["IntervalSpec"] if key == "intervals" else inner, common=key == "intervals")
        yield from _sections(inner, f"{name}.")


def _table(table: Schema, *, common: bool = False) -> str:
    lines = ["| key | type | required | meaning |", "| --- | --- | --- | --- |"]
    keys = table["properties"]
    lines += [
        f"| `{key}` | {_type(schema)} | {_required(key, table, common)} | {schema['description']} |"
        for key, schema in keys.items()
    ]
    told = [
        f'- `{key} = "{choice}"`: {meaning}'
        for key, schema in keys.items()
        for choice, meaning in zip(schema.get("enum", ()), schema.get("enumDescriptions", ()), strict=False)
    ]
    return "\n".join([*lines, "", *told, ""] if told else [*lines, ""])


def _type(schema: Schema) -> str:
    if "enum" in schema:
        kind = TYPES[schema.get("type", "integer")]
        return f"{kind}: {', '.join(f'`{choice}`' for choice in schema['enum'])}"
    if schema.get("type") == "array":
        items = [schema["items"]] if schema.get("items") else schema["prefixItems"]
        first, _, choices = _type(items[0]).partition(": ")
        first = first.partition(", ")[0]
        count = "two" if schema.get("minItems") == schema.get("maxItems") == 2 else "list of"
        return f"{count} {first.removesuffix('s')}s{f': {choices}' if choices else ''}"
    if schema.get("type") == "object" and schema.get("additionalProperties"):
        return f"table of names, each with a {_type(schema['additionalProperties'])}"
    least = f", at least {schema['minimum']}" if "minimum" in schema else ""
    patterns = {"{1,15}": "decimal string", "{64}": "64 hexadecimal digits"}
    told = [name for sign, name in patterns.items() if sign in schema.get("pattern", "")]
    return told[0] if told else f"{TYPES.get(schema.get('type', ''), 'table')}{least}"


def _required(key: str, table: Schema, common: bool) -> str:
    conditions = [each for each in table.get("allOf", ()) if key in each["else"]["properties"]]
    required = key in table.get("required", ()) or any("then" in each for each in conditions)
    default = table["properties"][key].get("default")
    default = None if isinstance(default, dict) else default  # a table of its own says it
    answer = "yes" if required else f"no; else `{default}`" if default else "no"
    answer += ", here or in `interval_method`" if common and required else ""
    for each in conditions:
        ((other, values),) = each["if"]["properties"].items()
        left_out = [] if "required" in each["if"] else ["left out"]
        said = " or ".join([*left_out, *(f"`{value}`" for value in values["enum"])])
        answer = f"{answer}, where `{other}` is {said}; nowhere else"
    return answer


def _language() -> str:
    compared, made = (", ".join(f"`{sign}`" for sign in signs) for signs in (COMPARISONS, ARITHMETIC))
    lines = [
        f"A test compares two values: {compared}. A value is a decimal number, a declared name, an operator",
        f"applied to values, or several values joined by {made}. A formula is a value. Arithmetic is exact.",
        "",
        "| operator | takes | gives | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for name, operator in OPERATORS.items():
        takes = ", ".join(kind.value for kind in operator.takes) + (" or more" if operator.many else "")
        gives = operator.gives.value + (", or a series of a series" if operator.elementwise else "")
        lines.append(f"| `{name}` | {takes} | {gives} | {operator.meaning.replace('|', '&#124;')} |")
    return "\n".join([*lines, ""])


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
