"""Runs a notebook's cells one after another, as Jupyter would, without Jupyter; the core alone is needed.

    python -P notebook.py NOTEBOOK [LAST]

The first cells, up to the LAST one, are run with Altair out of reach; without LAST, all cells are run.
"""

import ast
import json
import sys
from pathlib import Path
from typing import Any


def cells(notebook: Path) -> list[tuple[str, str]]:
    """Return kind and text of every cell."""
    document = json.loads(notebook.read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in document["cells"]]


def run_cells(notebook: Path, last: int | None = None) -> tuple[dict[str, Any], dict[int, Any]]:
    """Run a notebook's cells and return its names, and what each cell, counted from 1, ends in and shows."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = {}
    for number, (kind, text) in enumerate(cells(notebook)[:last], 1):
        if kind != "code":
            continue
        tree = ast.parse(text)
        ending = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), names)  # noqa: S102 - our own notebook
        if isinstance(ending, ast.Expr):
            shown[number] = eval(compile(ast.Expression(ending.value), f"cell {number}", "eval"), names)  # noqa: S307
    return names, {number: value for number, value in shown.items() if value is not None}


if __name__ == "__main__":
    until = int(sys.argv[2]) if len(sys.argv) > 2 else None
    if until:
        sys.modules["altair"] = None  # type: ignore[assignment] - importing it fails
    for at, value in run_cells(Path(sys.argv[1]), until)[1].items():
        print(at, value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
