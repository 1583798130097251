"""Changed copies of logs that real programs wrote: `cases.toml` has the changes, and what comes of each."""

import copy
import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.unit.registers.importing.logs import LOGS, outcome, played, study_of
from toolkit.drafting.outline import outlined
from toolkit.errors import DamagedError, IncompleteError
from toolkit.registers.importing.reading import read_log

DATA = tomllib.loads(Path(__file__).with_name("cases.toml").read_text("utf-8"))
CASES = {f"{log}: {case['name']}": (log, case) for log, of in DATA.items() for case in of["cases"]}


def change(folder: Path, names: dict[str, str], text: str) -> None:
    """Change a file of a log, as a line of `cases.toml` says."""
    verb, *words = text.split(" ", 3)
    file, *rest = (names.get(word, word) for word in words)
    path, other = folder / file, folder / "".join(rest[:1])
    if verb == "delete":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif verb == "copy":
        shutil.copytree(path, other) if path.is_dir() else shutil.copy(path, other)
    elif verb == "move":
        path.rename(other)
    elif verb == "half":
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    else:
        edit(path, verb, *rest)


def edit(path: Path, verb: str, place: str = "", value: str = "null") -> None:
    """Change a JSON document, or JSON lines."""
    text = path.read_text("utf-8")
    try:
        document, is_lines = json.loads(text), False
    except json.JSONDecodeError:
        document, is_lines = list(map(json.loads, text.splitlines())), True
    for inside, key in [*places(document, place.split("/"))]:
        if verb == "drop":
            del inside[key]
        elif verb == "again":
            inside.append(copy.deepcopy(inside[key]))
        elif verb == "turn":
            document.reverse()
        else:
            new = json.loads(value)
            old = inside[key] if isinstance(new, dict) else None
            inside[key] = old | new if isinstance(old, dict) else new
    path.write_text("\n".join(map(json.dumps, document)) if is_lines else json.dumps(document), "utf-8")


def places(document: Any, steps: list[str]) -> Iterator[tuple[Any, Any]]:
    """Yield the members that a place names, each as what holds it and its key."""
    step, *rest = steps
    keys = range(len(document)) if step == "*" else [int(step or 0) if isinstance(document, list) else step]
    for key in keys:
        yield from places(document[key], rest) if rest else [(document, key)]


@pytest.mark.parametrize("case", CASES)
def test_a_changed_log_is_read_as_it_says_or_refused_in_one_error(case: str, tmp_path: Path) -> None:
    log, told = CASES[case]
    folder = shutil.copytree(LOGS / log, tmp_path / "log")
    for text in told.get("changes", ()):
        change(folder, DATA[log], text)
    if "error" in told:
        with pytest.raises((DamagedError, IncompleteError)) as caught:
            read_log([folder])
        assert re.search(told["error"], str(caught.value), re.DOTALL)
        assert caught.value.where or caught.value.remedy
        return
    read = read_log([folder])
    of = (pl.col(name) == value for name, value in told.get("of", {}).items())
    row = read.table.filter(pl.lit(True), *of).row(0, named=True)
    assert told.get("row", {}).items() <= row.items()
    assert all(row[name] is None for name in told.get("empty", ()))
    assert not {*told.get("absent", ())} & {*read.table.columns}
    assert {*told.get("left_out", ())} <= {*read.left_out}
    for name, values in told.get("values", {}).items():
        assert sorted(read.table[name].unique()) == values
    if "arm" in told:
        assert outlined("mine", read).columns["arm"] == told["arm"]
    if "study" in told:
        with pytest.raises(DamagedError, match=told["study"]):
            study_of(played(read), arm="model", true_success=outcome(read.table))
