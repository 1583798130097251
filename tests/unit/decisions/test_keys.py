"""The keys of rules and amendments: the JSON Schema takes what the parser takes."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin
from unittest import mock

import jsonschema
import pytest

from tests import rules_schema
from tests.conftest import CHECKOUT, Toolkit
from toolkit.errors import RuleError
from toolkit.lab.play.matrix import specify
from toolkit.prereg.record import AmendmentHead
from toolkit.rules import rulebook
from toolkit.rules.rulebook import AmendmentFile, RulesFile
from toolkit.rules.sections import document_in, keys

FOLDER = CHECKOUT / "tests" / "fixtures" / "rules"
EVERY_KEY, EVERY_AMENDMENT_KEY = (
    tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    for name in ("every_key", "every_amendment_key")
)
VALIDATORS = {file: jsonschema.Draft202012Validator(schema) for file, schema in rules_schema.SCHEMAS.items()}
POOLS = dict.fromkeys(("train", "validation", "test", "diagnostic"), "0" * 64)
# What the parser says of a key that is unknown, missing, of the wrong type or outside its set.
OF_KEYS = re.compile(
    r"table of the rules is invalid|section is not a table|'runs' has no column|another version"
)
# Of a range that does not rise, a rate out of bounds, and an outcome's keys.
# A schema does not know the arms of a line, nor what the frozen rules say of every interval alike.
UNSEEN = re.compile(
    r"matrix\.2\.settings\.checkpoints\.sha256|intervals\.last_90\.\w+: remove|amendment\.dated"
)
LEFT_OUT = {"interval_method", "interval_conventions", "recipe"}  # said once, and below

Path_ = tuple[str | int, ...]


def refusal(rules: Any, *amendments: Any) -> str:
    """Return what the parser says of rules, those who specify runs included; nothing where it takes them.

    They are written as JSON: the standard library writes no TOML.
    """
    try:
        with mock.patch.object(rulebook, "_toml", lambda text, _: json.loads(text)):
            book = rulebook.load_rulebook(json.dumps(rules), [json.dumps(each) for each in amendments])
        specify(book.plan, ("every-key", "anchor"), POOLS)
    except RuleError as error:
        return str(error)
    return ""


def places(content: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of every key and every member of a document."""
    for name, member in content.items() if isinstance(content, dict) else enumerate(content):
        yield (*path, name)
        if isinstance(member, dict | list):
            yield from places(member, (*path, name))


def likeness(document: Any, path: Path_) -> tuple[Any, ...]:
    """Return what makes places alike: whatever they are called and numbered, but of one method or kind."""
    parts = [part for part in path if isinstance(part, str)]
    if (
        len(parts) > 1
        and parts[0] not in ("amendment", "probe", "words")
        and isinstance(document[parts[0]], dict)
    ):
        of = document[parts[0]][parts[1]]
        parts[1] = str([of.get(key) for key in ("method", "kind", "size")] if isinstance(of, dict) else "")
    return (*parts, isinstance(path[-1], int))


def inside(document: Any, path: Path_) -> Any:
    for part in path[:-1]:
        document = document[part]
    return document


WRONG: dict[type, dict[str, Any]] = {
    str: {"a number": 7, "another text": "zzz", "no text": ""},
    int: {"a text": "zzz", "true": True},
    bool: {"a text": "zzz"},
    list: {"a text": "zzz", "lists": [[]]},
    dict: {"a text": "zzz"},
}
"""What a value is changed into, by its type."""


def defects(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield a document with one defect each: a key too many, none, another one, or another value."""
    for path in {likeness(document, path): path for path in places(document)}.values():
        table, name = inside(document, path), path[-1]
        value = table[name]
        changes: dict[str, Any] = {what: [wrong] for what, wrong in WRONG[type(value)].items()}
        if isinstance(table, dict):
            others = {other: table[other] for other in table if other != name}
            changes = {what: {**others, name: wrong} for what, [wrong] in changes.items()}
            changes |= {"remove": others, "rename": {**others, f"{name}_": value}}
            changes["add"] = {**table, "colour": "red"}
        for change, made in changes.items():
            yield f"{'.'.join(map(str, path))}: {change}", _with(document, path[:-1], made)


def _with(document: Any, path: Path_, made: Any) -> Any:
    """Return a document with something else in a place."""
    if not path:
        return made
    inner = _with(document[path[0]], path[1:], made)
    if isinstance(document, list):
        return [inner if number == path[0] else member for number, member in enumerate(document)]
    return {**document, path[0]: inner}


def disagreement(kind: str, document: Any, *rules: Any) -> str:
    """Return how parser and schema disagree about a document; nothing where they do not."""
    said = refusal(*rules, document)
    is_valid = VALIDATORS[kind].is_valid(document)
    if is_valid and OF_KEYS.search(said.split("\n")[0]):
        return f"the schema takes it; the parser says: {said.splitlines()[0]}"
    if not is_valid and not said:
        return f"the parser takes it; the schema says: {next(VALIDATORS[kind].iter_errors(document)).message}"
    return ""


def test_a_file_with_every_key_is_taken() -> None:
    assert refusal(EVERY_KEY, EVERY_AMENDMENT_KEY) == ""
    for kind, document in (("rules.json", EVERY_KEY), ("amendment.json", EVERY_AMENDMENT_KEY)):
        VALIDATORS[kind].validate(document)


@pytest.mark.parametrize("nth", [pytest.param(1, marks=pytest.mark.slow), 7])
@pytest.mark.parametrize(
    ("kind", "document", "frozen"),
    [("rules.json", EVERY_KEY, ()), ("amendment.json", EVERY_AMENDMENT_KEY, (EVERY_KEY,))],
    ids=["rules", "amendment"],
)
def test_the_schema_refuses_where_the_parser_refuses_a_key(kind, document, frozen, nth) -> None:
    """Every key of a file that has them all: removed, renamed, beside one too many, and with other values."""
    tried = dict(list(defects(document))[::nth])
    found = {name: said for name in tried if (said := disagreement(kind, tried[name], *frozen))}
    assert [f"{name}: {said}" for name, said in found.items() if not UNSEEN.match(name)] == []
    assert len(tried) > 300 // nth


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("intervals", "gap_percentile", "method"), "t over seeds", "unknown field `resamples`"),
        (("intervals", "gap_t", "method"), "seed bootstrap", "required field `resamples`"),
        (("tests", "ranks", "method"), "mcnemar", "unknown field `over`"),
        (("tests", "pairs", "method"), "sign flip", "required field `over`"),
        (("sets", "main", "size"), "not registered", "unknown field `tasks`"),
        (("sets", "unknown", "size"), "registered", "required field `tasks`"),
        (("rules", "P1", "kind"), "hypothesis", "unknown field `parts`"),
    ],
)
def test_some_keys_go_with_what_another_says(path: Path_, value: str, problem: str) -> None:
    document = _with(EVERY_KEY, path, value)
    assert problem in refusal(document)
    assert not VALIDATORS["rules.json"].is_valid(document)


@pytest.mark.parametrize("common", ["interval_method", "interval_conventions"])
def test_what_an_interval_lacks_may_stand_in_what_all_say_alike(common: str) -> None:
    interval = EVERY_KEY["intervals"]["gap_t"]
    level = interval["level"]
    said_elsewhere = {name: value for name, value in interval.items() if name != "level"}
    lacking = _with(EVERY_KEY, ("intervals", "gap_t"), said_elsewhere)
    assert "required field `level`" in refusal(lacking)
    assert not VALIDATORS["rules.json"].is_valid(lacking)
    for wrong, said in (
        ({"level": level}, ""),
        ({"level": 0.9}, "Expected a decimal"),
        ({"levl": "0.9"}, "did you mean 'level'?"),
    ):
        document = {**lacking, common: wrong}
        assert said in refusal(document)
        assert bool(refusal(document)) == bool(said)
        assert VALIDATORS["rules.json"].is_valid(document) == (not said)


def declared(kind: Any, path: str = "") -> Iterator[str]:
    """Yield every key that is declared below a table."""
    for name, hint in keys(kind).items():
        yield f"{path}.{name}"
        if part := document_in(hint):
            yield from declared(part, f"{path}.{name}")


def used(content: Any, kind: Any, path: str = "") -> Iterator[str]:
    """Yield every key of a document that its type declares."""
    for name, value in content.items():
        hint = keys(kind)[name]
        yield f"{path}.{name}"
        if part := document_in(hint):
            tables = value if isinstance(value, list) else [value]
            is_named = hint is not part and not isinstance(value, list) and get_origin(hint) is dict
            for table in value.values() if is_named else tables:
                yield from used(table, part, f"{path}.{name}")


def test_every_key_that_is_declared_is_in_the_files_that_are_changed() -> None:
    """Or parser and schema are compared without it."""
    files = ((EVERY_KEY, RulesFile), (EVERY_AMENDMENT_KEY, AmendmentFile))
    missing = {key for _, kind in files for key in declared(kind)}
    missing -= {key for document, kind in files for key in used(document, kind)}
    assert {name.split(".")[1] for name in missing} <= LEFT_OUT


SHIPPED = [
    *CHECKOUT.glob("prereg/*/rules.toml"),
    *CHECKOUT.glob("prereg/*/amendments/*.toml"),
    *CHECKOUT.glob("examples/*/*/registered/prereg/*/rules.toml"),
]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_registration_here_is_valid(path: Path) -> None:
    kind = "rules.json" if path.name == "rules.toml" else "amendment.json"
    VALIDATORS[kind].validate(tomllib.loads(path.read_text(encoding="utf-8")))


def test_the_templates_are_valid(toolkit: Toolkit) -> None:
    for command, kind in ((("freeze", "mine"), "rules.json"), (("amend",), "amendment.json")):
        VALIDATORS[kind].validate(tomllib.loads(toolkit(*command, "--template").out))


LOG = "arm,seed,step,task,solved,level\na,0,0,t1,1,hard\nb,0,0,t1,0,hard\na,1,0,t2,1,easy\nb,1,0,t2,0,easy\n"


@pytest.mark.parametrize(
    "options",
    [(), ("--table", "log.csv"), ("--table", "log.csv", "--score", "solved", "--attribute", "level")],
    ids=["empty", "of a log", "of scores, with an attribute"],
)
def test_a_study_s_beginning_is_valid(toolkit, tmp_path, monkeypatch, options) -> None:
    (tmp_path / "log.csv").write_text(LOG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = toolkit("new-study", "mine", *options, "--into", "project")
    assert done.code == 0, done.err
    text = (tmp_path / "project/prereg/mine/rules.toml").read_text(encoding="utf-8")
    VALIDATORS["rules.json"].validate(tomllib.loads(text))


@pytest.mark.parametrize("validator", VALIDATORS.values(), ids=list(VALIDATORS))
def test_the_schemas_are_valid(validator: jsonschema.Draft202012Validator) -> None:
    jsonschema.Draft202012Validator.check_schema(validator.schema)


def test_the_reference_names_every_key_with_its_meaning() -> None:
    text = rules_schema.rules_reference()
    for name in {path.rpartition(".")[2] for path in (*declared(RulesFile), *declared(AmendmentHead))}:
        assert re.search(rf"^\| `{name}` \| .+ \| .+ \| .{{3,}} \|$", text, re.MULTILINE), name


def test_an_unknown_key_is_offered_the_nearest_one() -> None:
    criterion = {**EVERY_KEY["rules"]["P1"]["criteria"][0], "tset": "x > 1"}
    document = _with(EVERY_KEY, ("rules", "P1", "criteria", 0), criterion)
    assert "rules.P1.criteria[0]" in refusal(document)
    assert "did you mean 'text' or 'test'?" in refusal(document)
