"""`python -m tests.rules_schema`: writes the JSON Schemas of rules and of amendments.

They are made of the keys that the parser reads; `rules_reference` says the same in words, as Markdown.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolkit.lab.play.matrix import SETTINGS
from toolkit.rules.expressions import ARITHMETIC, COMPARISONS, OPERATORS
from toolkit.rules.plan import CELL, FIXED
from toolkit.rules.rulebook import AMENDED, RULES, SPAN
from toolkit.rules.sections import (
    DECIMAL,
    IDENTIFIER,
    OPTIONAL,
    Form,
    Key,
    Keys,
    Listed,
    Named,
    Value,
    optional,
)
from toolkit.structs import replace

FOLDER = Path(__file__).parents[1] / "toolkit" / "documents" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

_TEXT = {"type": "string", "minLength": 1}
_EXACT = {"type": "string", "pattern": f"^(?:{DECIMAL.pattern})$"}
VALUES: dict[Value, Schema] = {
    Value.TEXT: _TEXT,
    Value.DECIMAL: _EXACT,
    Value.NUMBER: {"anyOf": [{"type": "number"}, _EXACT]},
    Value.SCALAR: {"type": ["string", "number"]},
    Value.WHOLE: {"type": "integer"},
    Value.SHA256: {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    Value.FLAG: {"type": "boolean"},
    Value.TEXTS: {"type": "array", "items": _TEXT},
    Value.DECIMALS: {"type": "array", "items": _EXACT},
    Value.WHOLES: {"type": "array", "items": {"type": "integer"}},
    Value.RANGE: {"type": "array", "items": _EXACT, "minItems": 2, "maxItems": 2},
    Value.TABLE: {"type": "object"},
}


def schemas() -> dict[str, Schema]:
    """Return the schemas of a rules file and of an amendment, by the name of their file."""
    rules = {**_head("rules.json", "The rules of a registration: rules.toml"), **_of_keys(RULES)}
    named, common = RULES["intervals"], RULES["intervals"].form.common
    # What one interval lacks, another table says; where there is none, it has to say all of it.
    rules["if"] = {"not": {"anyOf": [{"required": [name]} for name in common]}}
    rules["then"] = {"properties": {named.name: _of_form(Named(named.form.of))}}
    return {
        "rules.json": rules,
        "amendment.json": {
            **_head("amendment.json", "An amendment of the rules of a registration"),
            **_of_keys(AMENDED),
        },
    }


def every() -> dict[str, str]:
    """Return the schemas as they are shipped, by the name of their file."""
    return {
        name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n" for name, schema in schemas().items()
    }


def _head(file: str, title: str) -> Schema:
    return {"$schema": DIALECT, "$id": file, "title": title}


def _of_keys(keys: Keys) -> Schema:
    required = [key.name for key in keys.values() if key.default is None and not key.only]
    conditions = [_condition(key, keys) for key in keys.values() if key.only]
    return {
        "type": "object",
        "properties": {key.name: _of_key(key) for key in keys.values()},
        **({"required": required} if required else {}),
        **({"allOf": conditions} if conditions else {}),
        "additionalProperties": False,
    }


def _of_key(key: Key) -> Schema:
    schema = _of_form(form_of(key))
    if key.choices:
        chosen = {"enum": list(key.choices)}
        schema = {**schema, "items": chosen} if key.value is Value.TEXTS else chosen
    if key.least is not None:
        schema = {**schema, "minimum": key.least}
    if key.default:
        schema = {**schema, "default": key.default}
    return {"description": key.meaning, **schema}


def _condition(key: Key, keys: Keys) -> Schema:
    """Return when a key may be there, and when it has to be."""
    other, values = key.only or ("", ())
    may_lack = OPTIONAL in values or keys[other].default is not None
    said = {"properties": {other: {"enum": [value for value in values if value != OPTIONAL]}}}
    return {
        "if": said if may_lack else {**said, "required": [other]},
        **({"then": {"required": [key.name]}} if key.default is None else {}),
        "else": {"properties": {key.name: False}},
    }


def _of_form(form: Form) -> Schema:
    if isinstance(form, Value):
        return VALUES[form]
    if isinstance(form, Listed):
        return {"type": "array", "items": _of_keys(form.of)}
    if isinstance(form, tuple):
        return {"anyOf": [_of_keys(keys) for keys in form]}
    if isinstance(form, Mapping):
        return _of_keys(form)
    of = optional(form.of) if form.common else form.of  # type: ignore[arg-type] - what is common is of keys
    each = {"type": "string"} if of is Value.TEXT else _of_form(of)
    are_identifiers = isinstance(of, Mapping) and of is not SPAN
    names = {"propertyNames": {"pattern": f"^(?:{IDENTIFIER.pattern})$"}} if are_identifiers else {}
    return {"type": "object", **names, "additionalProperties": each}


def form_of(key: Key) -> Form:
    """Return what a key holds; who plays runs knows their settings."""
    return SETTINGS if key is CELL["settings"] else key.form


def rules_reference() -> str:
    """Return every key of a rules file and of an amendment, and the language of tests, in Markdown."""
    parts = ["### `rules.toml`\n", _table(RULES), *_sections(RULES, "")]
    shared = ", ".join(f"`{name}`" for name in AMENDED if name in RULES)
    parts += ["### An amendment\n", f"Beside `[amendment]` it has, as `rules.toml` does, {shared}.\n"]
    parts += ["#### `[amendment]`\n", _table(AMENDED["amendment"].form)]
    parts += ["### Tests and formulas\n", _language()]
    return "\n".join(parts)


def _sections(keys: Keys, path: str) -> Iterator[str]:
    """Yield the sections of the tables in a table, from the top down."""
    for key in keys.values():
        form, name = form_of(key), f"{path}{key.name}"
        common: tuple[str, ...] = ()
        if isinstance(form, Named):
            common, form, name = form.common, form.of, f"{name}.NAME"
        heading = f"[[{name}]]" if isinstance(form, Listed) else f"[{name}]"
        form = form.of if isinstance(form, Listed) else form
        parts = form if isinstance(form, tuple) else (form,)
        if form is FIXED or not isinstance(parts[0], Mapping) or key.name in RULES["intervals"].form.common:
            continue
        yield f"#### `{heading}`\n\n{_upper(key.meaning)}.\n"
        yield "\nor\n\n".join(_table(part, common) for part in parts)
        for part in parts:
            yield from _sections(part, f"{name}.")


def _table(keys: Keys, common: tuple[str, ...] = ()) -> str:
    lines = ["| key | type | required | meaning |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{key.name}` | {_type(key)} | {_required(key, common)} | {key.meaning} |" for key in keys.values()
    ]
    told = [
        f'- `{key.name} = "{choice}"`: {meaning}'
        for key in keys.values()
        if isinstance(key.choices, Mapping)
        for choice, meaning in key.choices.items()
    ]
    return "\n".join([*lines, "", *told, ""] if told else [*lines, ""])


def _type(key: Key) -> str:
    form = form_of(key)
    value = f"table of names, each with a {_value(form.of)}" if isinstance(form, Named) else _value(form)
    least = "" if key.least is None else f", at least {key.least}"
    choices = f": {', '.join(f'`{choice}`' for choice in key.choices)}" if key.choices else ""
    return f"{value}{least}{choices}"


def _value(form: Form) -> str:
    return replace(RULES["name"], form=form).value.value


def _required(key: Key, common: tuple[str, ...]) -> str:
    answer = "yes" if key.default is None else f"no; else `{key.default}`" if key.default else "no"
    answer += f", here or in `{common[0]}`" if common and key.default is None else ""
    if key.only:
        values = " or ".join("left out" if value == OPTIONAL else f"`{value}`" for value in key.only[1])
        answer = f"{answer}, where `{key.only[0]}` is {values}; nowhere else"
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


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, content in every().items():
        (FOLDER / file).write_text(content, encoding="utf-8")
