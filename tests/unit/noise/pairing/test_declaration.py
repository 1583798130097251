"""Declarations of tools, read and proposed: by the server's hints or the methods of HTTP, with doubts."""

from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.noise.declaration import parse_declaration, read_declaration
from toolkit.noise.mcp.proposal import confirmed, from_openapi, from_server, text_of
from toolkit.noise.tools import Tool

FILES = """
name = "files"

[tools.read_file]
kind = "read"
resource = "path"

[tools.list_files]
kind = "list"
shows = "files"
offset = "from"
stale = "never"

[tools.move_file]
kind = "write"
resource = "source"
repeatable = true
"""


def test_a_declaration_says_what_noise_has_to_know() -> None:
    said = parse_declaration(FILES, "files.toml")
    assert said.name == "files"
    assert said.tools == {
        "read_file": Tool("read_file", "read", "path", stale="recorded"),
        "list_files": Tool("list_files", "list", shows="files", offset="from", stale="never"),
        "move_file": Tool("move_file", "write", "source", repeatable=True, stale="recorded"),
        "wait": Tool("wait", "control"),
    }
    assert "stale_read" not in said.tools["list_files"].faults


def test_its_digest_is_of_what_it_says() -> None:
    said = parse_declaration(FILES, "files.toml")
    again = parse_declaration(FILES.replace("\n\n", "\n# a comment\n"), "files.toml")
    other = parse_declaration(FILES.replace('"from"', '"offset"'), "files.toml")
    assert said.sha256 == again.sha256 != other.sha256


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('name = "files"', "name = 3", r"\$.name"),
        ('name = "files"', 'names = "files"', "`names?`"),
        ('kind = "read"', 'kind = "reads"', "'reads'"),
        ('kind = "read"', "", "`kind`"),
        ('resource = "path"', "resource = 3", r"\$.tools\[...\].resource"),
        ('resource = "path"', 'resource = ""', "length >= 1"),
        ('resource = "path"', "fields = [3]", r"\$.tools\[...\].fields"),
        ('resource = "path"', 'recourse = "path"', "`recourse`"),
        ("repeatable = true", "repeatable = 1", "`bool`"),
        ('stale = "never"', 'stale = "often"', "'often'"),
        ("[tools.move_file]", "[tools.wait]", "always there"),
        ("[tools.move_file]", "[tools.", "not TOML"),
    ],
)
def test_what_is_no_declaration_is_refused_by_its_place(before: str, after: str, message: str) -> None:
    assert before in FILES
    with pytest.raises(DamagedError, match=message) as refused:
        parse_declaration(FILES.replace(before, after), "files.toml")
    assert "files.toml" in str(refused.value)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError):
        read_declaration(tmp_path / "none.toml")


def test_a_call_is_about_the_text_of_its_argument() -> None:
    said = parse_declaration(FILES, "files.toml")
    read, listed = said.tools["read_file"], said.tools["list_files"]
    assert said.resource(read, {"path": "a b"}) == "a b"
    assert said.resource(read, {"path": [1, "b"]}) == '[1,"b"]'
    assert said.resource(read, {}) == said.resource(listed, {"from": 3}) == "*"


READS = {"readOnlyHint": True}


def of_server(**said: Any) -> tuple[Tool, str]:
    (proposed,) = from_server([{"name": "get", **said}])
    return proposed.tool, "; ".join(proposed.doubts)


def takes(required: tuple[str, ...], **types: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("hints", "kind", "repeatable", "is_unsure"),
    [
        (READS, "read", False, False),
        ({"readOnlyHint": False}, "write", False, False),
        ({"readOnlyHint": False, "idempotentHint": True}, "write", True, False),
        ({"readOnlyHint": "yes"}, "write", False, False),
        ({"idempotentHint": True}, "write", True, True),
        (None, "write", False, True),
    ],
)
def test_the_kind_is_what_the_server_says(hints: Any, kind: str, repeatable: bool, is_unsure: bool) -> None:
    tool, doubts = of_server(annotations=hints)
    assert (tool.kind, tool.repeatable, "only reads" in doubts) == (kind, repeatable, is_unsure)


@pytest.mark.parametrize(
    ("schema", "resource", "is_unsure"),
    [
        (takes(("path",), path="string"), "path", False),
        (takes(("repo_path", "id"), repo_path="string", id="string"), "repo_path", False),
        (takes(("text", "userId"), text="string", userId="string"), "userId", False),
        (takes(("id", "uri"), id="integer", uri="string"), "uri", False),
        (takes(("text",), text="string", path="string"), None, True),
        (takes(("valid",), valid="string"), None, True),
        (takes(("n",), n="integer"), None, True),
        ({"type": "object"}, None, False),
        (None, None, False),
    ],
)
def test_the_resource_is_the_first_required_text_that_names_something(schema, resource, is_unsure) -> None:
    tool, doubts = of_server(annotations=READS, inputSchema=schema)
    assert (tool.resource, bool(doubts)) == (resource, is_unsure)


@pytest.mark.parametrize(
    ("schema", "kind", "shows"),
    [
        ({"type": "object", "properties": {"result": {"type": "array"}}}, "list", "result"),
        (
            {"type": "object", "properties": {"n": {"type": "integer"}, "rows": {"type": "array"}}},
            "list",
            "rows",
        ),
        ({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array"}}}, "read", None),
        ({"type": "object", "properties": {"content": {"type": "string"}}}, "read", "content"),
        ({"type": "array"}, "list", None),
        (
            {
                "type": "object",
                "properties": {"rows": {"$ref": "#/$defs/R"}},
                "$defs": {"R": {"type": "array"}},
            },
            "list",
            "rows",
        ),
        (None, "read", None),
    ],
)
def test_an_answer_with_one_list_is_a_list(schema: Any, kind: str, shows: str | None) -> None:
    tool, _ = of_server(annotations=READS, outputSchema=schema)
    assert (tool.kind, tool.shows) == (kind, shows)


def test_a_name_that_says_list_is_a_doubt() -> None:
    (proposed,) = from_server([{"name": "list_files", "annotations": READS}])
    assert 'perhaps kind = "list"' in proposed.doubts[0]


PATHS: dict[str, Any] = {
    "/users": {"get": {"operationId": "users"}, "post": {"operationId": "add_user"}},
    "/users/{user}/notes/{note}": {
        "parameters": [],
        "get": {"operationId": "note"},
        "put": {"operationId": "put_note"},
        "patch": {"operationId": "patch_note"},
        "delete": {},
        "head": {},
    },
    "/mapped": {"get": {"operationId": "mapped"}},
}
OK_LIST = {"200": {"content": {"application/json": {"schema": {"type": "array"}}}}}
PATHS["/users"]["get"]["responses"] = OK_LIST
PAGE = {"type": "object", "properties": {"items": {"type": "array"}, "next": {"type": "string"}}}
PATHS["/mapped"]["get"]["responses"] = {
    "201": {"$ref": "#/components/responses/Page"},
}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Users & notes"},
    "paths": PATHS,
    "components": {
        "schemas": {"Page": PAGE},
        "responses": {
            "Page": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Page"}}}}
        },
    },
}


def test_an_interface_says_by_its_methods_what_its_operations_are() -> None:
    name, proposed = from_openapi(DOCUMENT, "x")
    assert name == "Users & notes"
    recorded: Any = {"stale": "recorded"}
    assert [each.tool for each in proposed] == [
        Tool("users", "list", **recorded),
        Tool("add_user", "write", **recorded),
        Tool("note", "read", "note", **recorded),
        Tool("put_note", "write", "note", repeatable=True, **recorded),
        Tool("patch_note", "write", "note", **recorded),
        Tool("delete_users_user_notes_note", "write", "note", repeatable=True, **recorded),
        Tool("mapped", "list", shows="items", **recorded),
    ]


@pytest.mark.parametrize("document", [[], "x", {"swagger": "2.0"}, {"openapi": "4"}, {"openapi": None}])
def test_what_is_no_interface_is_refused(document: Any) -> None:
    with pytest.raises(DamagedError, match="OpenAPI 3"):
        from_openapi(document, Path("x"))


def test_two_operations_of_one_name_are_refused() -> None:
    paths = {"/a": {"get": {"operationId": "x"}}, "/b": {"get": {"operationId": "x"}}}
    with pytest.raises(DamagedError, match="one name"):
        from_openapi({"openapi": "3.0.0", "paths": paths}, "x")


def test_circles_and_junk_in_an_interface_do_no_harm() -> None:
    circle = {"a": {"$ref": "#/components/schemas/a"}}
    answer = {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/a"}}}}}
    paths = {
        "/a": {"get": {"responses": answer}},
        "/b": 5,
        "/c": {"get": 7},
        "/d": {"post": {"responses": []}},
    }
    _, proposed = from_openapi({"openapi": "3.0.0", "paths": paths, "components": {"schemas": circle}}, "x")
    assert [(each.tool.name, each.tool.kind) for each in proposed] == [("get_a", "read"), ("post_d", "write")]


@pytest.mark.parametrize(
    "name", ["plain", "with.dot", 'quo"te', "new\nline", "back\\slash", "\x7f\u200b\xa0", "é🙂"]
)
def test_what_is_written_is_what_was_proposed(name: str) -> None:
    said = {"annotations": READS, "inputSchema": takes((f"{name}_id",), **{f"{name}_id": "string"})}
    proposed = from_server(
        [{"name": name, **said}, {"name": "other", "inputSchema": takes((name,), **{name: "string"})}]
    )
    text = text_of(name, proposed)
    assert parse_declaration(text, "x") == confirmed(name, proposed)
    assert text.replace("\n", "").isprintable()


def test_nothing_to_declare_is_refused() -> None:
    with pytest.raises(UsageError, match="no tool"):
        text_of("x", from_server([{"name": "wait"}]))
