"""The authors' words: lists and sentences, read from a checkout of their repository, and never executed.

None of them is part of this project. Without a checkout there are placeholders, as many of each: the same
tasks, schedules and figures follow from them; only prompts and the pools' bytes do not.
"""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.line_ends import CAUSE, is_converted
from toolkit.places import Home
from toolkit.prereg.adoption import Folder
from toolkit.prereg.record import EVIDENCE

REGISTRATION = "paired-rollouts"
REPOSITORY = "https://github.com/TheDeadcoder/paired-rollouts"
REMEDY = f"git clone {REPOSITORY} ../{REGISTRATION} && toolkit adopt published ../{REGISTRATION}"
AT = "src/pairedrl/env/backoffice/"
"""Where the files lie in a checkout, but for those of `ELSEWHERE`."""
ELSEWHERE = MappingProxyType({"dataset.py": "src/pairedrl/train/"})
SOURCES = MappingProxyType(
    {
        "world.py": "8d0f5754ea76d1a1e3c69fa57906688f229062a10dc0f69f14f5e504417a0e5d",
        "tasks.py": "b8dbd16023e4a2f54a7307ac5f3c7189ad9176cee87b4cb527335e5cd89071ae",
        "tools.py": "a7e5304aac29ffea1fee11b320a06cab21d3519bd998fee7a0754a57dbf3a077",
        "dataset.py": "8dfcfb9edb60f6b3d1c46973c2984ae946917690454ce1fe1ba4bbe5313ce6bf",
    }
)
"""File → its SHA-256 in the commits that the runs name."""
LARGEST = 1 << 20
Schema = dict[str, Any]

LISTS = {
    "first": ("world.py", "FIRST_NAMES", 30),
    "last": ("world.py", "LAST_NAMES", 20),
    "street": ("world.py", "STREETS", 10),
    "city": ("world.py", "CITIES", 10),
    "product": ("world.py", "PRODUCT_NAMES", 40),
    "refunded": ("world.py", "REFUND_REASONS", 4),
    "summary": ("world.py", "TICKET_SUMMARIES", 7),
    "new_street": ("tasks.py", "STREETS", 6),
    "new_city": ("tasks.py", "CITIES", 6),
}
"""List → its file, its name there, and how many words it has."""
SENTENCES = {
    "describe_order": {"order": 1, "order_of_item": 2},
    "describe_order_by_item": {"order": 1, "order_of_day": 1},
    "_make_subtask": {
        "address_change": 4,
        "cancel_pending": 1,
        "cancel_paid_refund": 1,
        "partial_refund_delivered": 4,
        "reserve_and_ship": 3,
        "ship_reserved": 3,
        "open_ticket": 4,
        "open_ticket_no_order": 3,
    },
    "_customer_reference": {"email": 2, "phone": 2, "name": 1},
    "_try_customer": {"one": 3, "part": 2, "several": 3, "task": 2},
}
"""Function of `tasks.py` → its sentences in order, each with the number of its blanks."""
REASONS = ("cancelled", "cancelled", "refund", "damaged")
"""Reasons that plans give, in order."""
UNITS, ORDINALS = 2, 3
PROMPT, TOOLS = "SYSTEM_PROMPT", "ToolAPI"
"""Name of the system prompt in `dataset.py`, and in `tools.py` of the class whose methods are the tools."""
_TYPES = {"str": "string", "int": "integer"}


class Words(NamedTuple):
    """Words of a world and of its tasks."""

    lists: Mapping[str, tuple[str, ...]]
    sentences: Mapping[str, tuple[str, ...]]  # the text around its blanks
    reasons: Mapping[str, str]
    units: tuple[str, ...]  # of one, and of several
    ordinals: tuple[str, ...]
    system_prompt: str = ""  # system_prompt, tools: what a model is shown besides its task
    tools: tuple[Schema, ...] = ()  # in OpenAI's function-calling form, in the trainer's order

    def say(self, sentence: str, *blanks: object) -> str:
        """Return a sentence with its blanks filled in."""
        first, *rest = self.sentences[sentence]
        return first + "".join(f"{blank}{text}" for blank, text in zip(blanks, rest, strict=True))


def placeholders() -> Words:
    """Return words that stand for the authors' own."""
    lists = {name: tuple(f"{name.title()}{n}" for n in range(count)) for name, (*_, count) in LISTS.items()}
    for name in ("street", "city"):  # a new address may be that of an order
        lists[f"new_{name}"] = lists[name][: len(lists[f"new_{name}"])]
    holes = {name: count for function in SENTENCES.values() for name, count in function.items()}
    return Words(
        lists,
        {name: (f"{name} ", *[" "] * count) for name, count in holes.items()},
        {name: name for name in REASONS},
        ("unit",) * UNITS,
        tuple(str(n) for n in range(1, ORDINALS + 1)),
    )


def adopted_words(home: Home) -> Words:
    """Return the words that `toolkit adopt` put in place in a home."""
    folder = home.registration_folder(REGISTRATION) / EVIDENCE
    if not all((folder / name).exists() for name in SOURCES):
        problem = "the words of the published study's tasks are not here"
        raise IncompleteError(problem, expected=", ".join(SOURCES), where=folder, remedy=REMEDY)
    return read_words(sources(Folder(folder), at=""))


def sources(checkout: Folder, at: str | None = None) -> dict[str, bytes]:
    """Return the files of a checkout that hold words, verified; `at` if all of them lie in one place."""
    places = {name: ELSEWHERE.get(name, AT) if at is None else at for name in SOURCES}
    return {name: _verified(checkout, f"{places[name]}{name}", digest) for name, digest in SOURCES.items()}


def _verified(checkout: Folder, path: str, expected: str) -> bytes:
    content = checkout.read(path, LARGEST)
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        is_same = is_converted(content, expected)
        raise VerificationError(
            f"{path} is not the file that the published runs were made with",
            expected=f"SHA-256 {expected}",
            found=CAUSE if is_same else f"SHA-256 {found}",
            where=checkout.root / path,
            remedy=f"restore it: git checkout HEAD -- {path}",
        )
    return content


def read_words(files: Mapping[str, bytes]) -> Words:
    """Return the words in the authors' files, which are parsed and not run."""
    trees = {name: _parsed(name, content) for name, content in files.items()}
    lists = {name: _list(trees[file], file, *asked) for name, (file, *asked) in LISTS.items()}
    functions = {n.name: n for n in ast.walk(trees["tasks.py"]) if isinstance(n, ast.FunctionDef)}
    sentences: dict[str, tuple[str, ...]] = {}
    for function, asked in SENTENCES.items():
        found = list(_sentences(_in(functions, function, "tasks.py")))
        for (name, holes), parts in zip(asked.items(), found, strict=False):
            if len(parts) == holes + 1:
                sentences[name] = parts
        if absent := asked.keys() - sentences.keys():
            raise _lacking("tasks.py", f"{function} with sentences of {', '.join(sorted(absent))}")
    made = functions["_make_subtask"]
    reasons = [
        _text(value, "tasks.py")
        for node in _ordered(made, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "reason"
    ]
    units = [
        (_text(node.body, "tasks.py"), _text(node.orelse, "tasks.py"))
        for node in _ordered(made, ast.IfExp)
        if isinstance(node.body, ast.Constant)
    ]
    if len(reasons) != len(REASONS) or len(units) != 1:
        raise _lacking("tasks.py", f"{len(REASONS)} reasons and a unit in _make_subtask")
    ordinals = _list(functions["_try_customer"], "tasks.py", "ordinals", ORDINALS)
    prompt = _text(_in(_assigned(trees["dataset.py"]), PROMPT, "dataset.py"), "dataset.py")
    classes = {n.name: n for n in ast.walk(trees["tools.py"]) if isinstance(n, ast.ClassDef)}
    methods = [n for n in _in(classes, TOOLS, "tools.py").body if isinstance(n, ast.FunctionDef)]
    # TRL takes an environment's methods in the order of their names.
    tools = [_tool(method) for method in sorted(methods, key=lambda n: n.name) if method.name[0] != "_"]
    given = dict(zip(REASONS, reasons, strict=True))
    return Words(lists, sentences, given, units[0], ordinals, prompt, tuple(tools))


def _tool(method: ast.FunctionDef) -> Schema:
    """Return a method as Transformers describes it to a model: by its annotations and its docstring."""
    about, _, told = (ast.get_docstring(method) or "").partition("\n\nArgs:\n")
    described = dict(line.strip().split(": ", 1) for line in told.splitlines() if ": " in line)
    arguments = method.args.args[1:]
    types = [_TYPES.get(ast.unparse(each.annotation)) for each in arguments if each.annotation]
    names = [each.arg for each in arguments]
    if not about or names != list(described) or len(types) != len(names) or None in types:
        raise _lacking("tools.py", f"{method.name} with annotations and a line of its docstring an argument")
    properties = {
        name: {"type": kind, "description": described[name]} for name, kind in zip(names, types, strict=True)
    }
    required = names[: len(names) - len(method.args.defaults)]
    parameters = {"type": "object", "properties": properties, "required": required}
    function = {"name": method.name, "description": about, "parameters": parameters}
    return {"type": "function", "function": function | {"return": {"type": "string"}}}


def _parsed(name: str, content: bytes) -> ast.Module:
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DamagedError("a file of words cannot be parsed", found=error, where=name) from None


def _list(tree: ast.AST, file: str, name: Any, count: Any) -> tuple[str, ...]:
    """Return the constant texts that a name is given."""
    value = _in(_assigned(tree), name, file)
    texts = tuple(_text(each, file) for each in value.elts) if isinstance(value, ast.Tuple) else ()
    if len(texts) != count:
        raise _lacking(file, f"{name} with {count} texts")
    return texts


def _assigned(tree: ast.AST) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in _ordered(tree, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _sentences(function: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield the texts around the blanks of a function's f-strings, in order."""
    formats = {id(n.format_spec) for n in ast.walk(function) if isinstance(n, ast.FormattedValue)}
    for node in _ordered(function, ast.JoinedStr):
        if id(node) in formats:
            continue
        parts = [""]
        for value in node.values:
            if isinstance(value, ast.Constant):
                parts[-1] += str(value.value)
            else:
                parts.append("")
        yield tuple(parts)


def _ordered(tree: ast.AST, kind: type[Any]) -> list[Any]:
    found = [node for node in ast.walk(tree) if isinstance(node, kind)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _text(node: ast.AST, file: str) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise _lacking(file, "a text in quotes", f"{ast.unparse(node)[:80]!r}")


def _in(found: Mapping[str, Any], name: str, file: str) -> Any:
    if name not in found:
        raise _lacking(file, name)
    return found[name]


def _lacking(file: str, expected: str, found: str | None = None) -> DamagedError:
    return DamagedError(
        "a file of words is not laid out as expected", expected=expected, found=found, where=file
    )
