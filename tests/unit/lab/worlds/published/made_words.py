"""Files laid out as the authors' that hold words, with other words: they are parsed, and cannot run."""

import hashlib
from pathlib import Path

import pytest

from toolkit.lab.worlds.published import words
from toolkit.lab.worlds.published.words import AT, LISTS, SENTENCES

WORLD = "\n".join(
    f"{name} = {tuple(f'{name.lower()}-{n}' for n in range(count))!r}"
    for file, name, count in LISTS.values()
    if file == "world.py"
)
_MORE = {
    "_make_subtask": """
    plans = [{"reason": "on a whim"}, {"reason": "on a whim"}, {"reason": "undone"}, {"reason": "torn"}]
    unit = "piece" if quantity == 1 else "pieces"
    """,
    "_try_customer": """
    ordinals = ("One", "Two", "Three")
    ignored = "no sentence"
    """,
}


def function(name: str) -> str:
    """Return a function with its sentences."""
    lines = [
        f"    said = f'<{sentence}"
        + "".join(f" {{blank{n}.of[{n}]:03d}}" for n in range(blanks))
        + f" {name}>'"
        for sentence, blanks in SENTENCES[name].items()
    ]
    return "\n".join([f"def {name}(quantity):{_MORE.get(name, '')}", *lines])


TASKS = "\n\n".join(
    [
        "STREETS = ('Up', 'Down', 'Left', 'Right', 'East', 'West')",
        "CITIES = ('A', 'B', 'C', 'D', 'E', 'F')",
        *map(function, SENTENCES),
    ]
)


def write(root: Path, patch: pytest.MonkeyPatch, **changed: str) -> Path:
    """Write a checkout with words that are taken for the authors' own."""
    files = {"world": WORLD, "tasks": TASKS} | changed
    contents = {f"{name}.py": text.encode() for name, text in files.items()}
    for name, content in contents.items():
        (root / AT).mkdir(parents=True, exist_ok=True)
        (root / AT / name).write_bytes(content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    patch.setattr(words, "SOURCES", digests)
    return root
