"""Files laid out as the authors' that hold words, with other words: they are parsed, and cannot run."""

import hashlib
from inspect import signature
from pathlib import Path

import pytest

from toolkit.lab.worlds import world
from toolkit.lab.worlds.published import foreign, office, tasks, tools, words
from toolkit.lab.worlds.published.office import Published
from toolkit.lab.worlds.published.words import AT, ELSEWHERE, LISTS, SENTENCES, read_words

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


NUMBERS = ("amount_cents", "day", "offset", "quantity", "seconds")
"""Arguments that are numbers."""


def method(name: str) -> str:
    """Return a tool with words about it and its arguments."""
    arguments = [each for each in signature(tools.TOOLS[name]).parameters if each.strip("_") != "world"]
    typed = [f"{each}: {'int' if each in NUMBERS else 'str'}" for each in arguments]
    given = ", ".join(f"{each} = 0" if each.startswith("offset") else each for each in typed)
    lines = [f"            {each}: about {each}." for each in arguments]
    return "\n".join(
        [
            f"    def {name}(self, {given}) -> str:",
            f'        """To {name}.',
            "",
            "        Args:",
            *lines,
            '        """',
            "",
            f"    def _{name}(self): ...",
        ]
    )


TOOLS = "\n\n".join(["class ToolAPI:", *map(method, tools.TOOLS)])
DATASET = 'SYSTEM_PROMPT = """Run the shop."""'
TRAINED_ON = 12


def open_small(patch: pytest.MonkeyPatch) -> Published:
    """Open the world in these words, with few tasks to train on; until the patch ends, everybody does."""
    files = {"world.py": WORLD, "tasks.py": TASKS, "tools.py": TOOLS, "dataset.py": DATASET}
    read = read_words({name: text.encode() for name, text in files.items()})
    patch.setitem(tasks.SEEDS, "train", (TRAINED_ON, 0, 100_000))
    patch.setitem(tasks.KEPT, "train", TRAINED_ON)
    patch.setattr(office, "adopted_words", lambda _: read)
    opened = Published()
    patch.setattr(world, "open_world", lambda _: opened)
    patch.setattr(world, "office", lambda: opened)
    patch.setattr(foreign, "check", lambda: None)
    office.ordered.cache_clear()
    return opened


def write(root: Path, patch: pytest.MonkeyPatch, **changed: str) -> Path:
    """Write a checkout with words that are taken for the authors' own."""
    files = {"world": WORLD, "tasks": TASKS, "tools": TOOLS, "dataset": DATASET} | changed
    contents = {f"{name}.py": text.encode() for name, text in files.items()}
    for name, content in contents.items():
        path = root / ELSEWHERE.get(name, AT) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    patch.setattr(words, "SOURCES", digests)
    return root
