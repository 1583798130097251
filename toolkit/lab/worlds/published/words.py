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
"""Where the files lie in a checkout."""
SOURCES = MappingProxyType(
    {
        "world.py": "8d0f5754ea76d1a1e3c69fa57906688f229062a10dc0f69f14f5e504417a0e5d",
        "tasks.py": "b8dbd16023e4a2f54a7307ac5f3c7189ad9176cee87b4cb527335e5cd89071ae",
    }
)
"""File → its SHA-256 in the commits that the runs name."""
LARGEST = 1 << 20

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


class Words(NamedTuple):
    """Words of a world and of its tasks."""

    lists: Mapping[str, tuple[str, ...]]
    sentences: Mapping[str, tuple[str, ...]]  # the text around its blanks
    reasons: Mapping[str, str]
    units: tuple[str, ...]  # of one, and of several
    ordinals: tuple[str, ...]

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


def sources(checkout: Folder, at: str = AT) -> dict[str, bytes]:
    """Return the files of a checkout that hold words, verified."""
    return {name: _verified(checkout, f"{at}{name}", digest) for name, digest in SOURCES.items()}


def _verified(checkout: Folder, path: str, expected: str) -> bytes:
    content = checkout.read(path, LARGEST)
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        is_same = is_converted(content, expected)
        raise VerificationError(
            f"{path} is not the file that the pools were generated with",
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
    return Words(lists, sentences, dict(zip(REASONS, reasons, strict=True)), units[0], ordinals)


def _parsed(name: str, content: bytes) -> ast.Module:
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DamagedError("a file of words cannot be parsed", found=error, where=name) from None


def _list(tree: ast.AST, file: str, name: Any, count: Any) -> tuple[str, ...]:
    """Return the constant texts that a name is given."""
    assigned = {
        target.id: node.value
        for node in _ordered(tree, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    value = _in(assigned, name, file)
    texts = tuple(_text(each, file) for each in value.elts) if isinstance(value, ast.Tuple) else ()
    if len(texts) != count:
        raise _lacking(file, f"{name} with {count} texts")
    return texts


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
