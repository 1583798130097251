"""Simulated cells: stored as JSON, a line each, and printed as tables of Markdown."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any


def write(file: Path, parts: Mapping[str, Iterable[Any]]) -> None:
    """Write cells, which are dataclasses, by the name of their part."""
    written = {
        name: ",\n    ".join(json.dumps(asdict(cell)) for cell in cells) for name, cells in parts.items()
    }
    text = ",\n  ".join(f'"{name}": [\n    {lines}\n  ]' for name, lines in written.items())
    file.write_text(f"{{\n  {text}\n}}\n", encoding="utf-8")


def read(file: Path, **kinds: type) -> list[list[Any]]:
    """Return the cells of each part, as its dataclass."""
    document = json.loads(file.read_text(encoding="utf-8"))
    return [[kind(**cell) for cell in document[name]] for name, kind in kinds.items()]


def markdown(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a table."""
    heads = list(heads)
    return [_line(heads), f"| {' | '.join(['---'] * len(heads))} |", *map(_line, rows)]


def percents(cell: Any, *counts: str) -> str:
    """Return counts of a cell, in percent of its simulations; nothing where there is none."""
    shares = (100 * getattr(cell, count) / cell.simulations for count in counts) if cell else ()
    return " / ".join(f"{share:.1f}" for share in shares)


def error(simulations: int, *shares: float) -> list[str]:
    """Return the Monte Carlo standard errors of shares, in points."""
    return [f"{100 * (share * (1 - share) / simulations) ** 0.5:.1f}" for share in shares]


def _line(cells: Sequence[object] | Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
