"""The list: a TOML file a room, a table a file of the toolkit, a line a defect.

A file's table says which `tests` guard it. A defect has a `name`, the text `old` that occurs exactly once in
the file and the `new` one that takes its place; `tests` of its own take the place of the file's. One that no
test can kill says in `survives` why.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Defect:
    room: str
    file: str
    name: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str = ""

    @property
    def stale(self) -> str:
        """Why it does not fit the checkout as it is; empty where it does."""
        if not (ROOT / self.file).is_file():
            return f"there is no {self.file}"
        times = (ROOT / self.file).read_text("utf-8").count(self.old)
        if times != 1 or self.old == self.new:
            return f"{self.file} has {self.old!r} {times} times, expected once, and another text instead"
        for guard in self.tests:
            path, _, test = guard.partition("::")
            if not (ROOT / path).exists():
                return f"there is no {path}"
            if test and not re.search(rf"def {test.partition('[')[0]}\(", (ROOT / path).read_text("utf-8")):
                return f"{path} has no {test}"
        return "" if self.tests else "it names no tests"


def load() -> list[Defect]:
    """Return every defect of every room."""
    return [
        Defect(path.stem, file, **{**entry, "tests": tuple(entry.get("tests", table["tests"]))})
        for path in sorted(Path(__file__).parent.glob("*.toml"))
        for file, table in tomllib.loads(path.read_text("utf-8")).items()
        for entry in table["defects"]
    ]
