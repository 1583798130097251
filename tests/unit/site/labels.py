"""The marks of pages as they are read, and the numbers that their sentences say."""

import csv
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

FOREST = ("rule", "verdict", "estimate", "low", "high")
SENTENCE = ("sentence",)  # of marks that carry nothing else
DIGITS = {"task": 5, "step": 3, "line": 4}  # significant ones, of kinds that do not have decimals
UNSAID = {"arm", "verdict"}  # text that a sentence need not hold: a run has its arm in its name
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?%?")
_FIGURE = re.compile(
    r'<figure class="chart" id="[^"]*" data-columns="([^"]*)">(?:(?!</figure>).)*?(?:<p class="chart-about">'
    r"(.*?)</p>)?(<svg.*?)</figure>",
    re.DOTALL,
)
_MARK = re.compile(r'<(?!span)\w+ [^>]*\bclass="mark\b[^>]*>')


@dataclass(frozen=True)
class Mark:
    """What a mark says, and the rows that it carries."""

    says: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A figure: its columns, what is said about it, and the marks of its drawings, wide and narrow."""

    columns: tuple[str, ...]
    about: str
    drawings: tuple[tuple[Mark, ...], ...]

    @property
    def kind(self) -> str:
        """Its kind: its first column, with its second where that alone does not tell."""
        return " ".join(self.columns[:2]) if self.columns[0] in ("run", "step") else self.columns[0]


def figures(page: str) -> Iterator[Figure]:
    """Yield every figure of a page, its table's forest plot among them."""
    found = [
        Figure(tuple(html.unescape(columns).split(",")), html.unescape(about or ""), _drawings(drawn))
        for columns, about, drawn in _FIGURE.findall(page)
    ]
    cells = re.findall(r'<svg class="drawing cell".*?</svg>', page, re.DOTALL)
    if of_cells := tuple(mark for cell in cells for mark in _marks(cell)):
        found.append(Figure(FOREST, "", (of_cells,)))
    plain = re.findall(r"<svg viewBox=.*?</svg>", page, re.DOTALL)
    if of_plain := tuple(mark for drawing in plain for mark in _marks(drawing)):
        found.append(Figure(SENTENCE, "", (of_plain,)))
    read = sum(len(drawing) for figure in found for drawing in figure.drawings)
    assert read == len(_MARK.findall(page))
    yield from found


def _drawings(drawn: str) -> tuple[tuple[Mark, ...], ...]:
    """Return the marks of each drawing; a script has the narrow one say what the wide one says."""
    wide, *narrow = (drawing for drawing in drawn.split("</svg>") if "<svg" in drawing)
    marks = tuple(_marks(wide))
    for other in narrow:
        assert _looks(other) == _looks(wide)
    return (marks, *(marks for _ in narrow))


def _looks(drawing: str) -> list[str]:
    return [look for tag in _MARK.findall(drawing) for look in re.findall(r' class="([^"]*)"', tag)]


def _marks(drawing: str) -> Iterator[Mark]:
    for tag in _MARK.findall(drawing):
        held = {name: html.unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', tag)}
        says = held["aria-label"].replace("\N{MINUS SIGN}", "-")
        read = csv.reader(held["data-row"].split("\n")) if "data-row" in held else [[says]]
        yield Mark(says, tuple(map(tuple, read)))


def normal(cell: object) -> str:
    """Return a cell so that equal numbers are equal texts."""
    if isinstance(cell, Fraction):
        cell = float(cell)
    try:
        return f"{float(str(cell)):.12g}"
    except ValueError:
        return str(cell)


def table(rows: Sequence[Sequence[Any]]) -> tuple[tuple[str, ...], ...]:
    """Return rows so that equal ones are equal, whatever their order."""
    return tuple(sorted(tuple("" if cell is None else normal(cell) for cell in row) for row in rows))


def shown(figure: Figure) -> set[tuple[tuple[str, ...], ...]]:
    """Return the rows that the figure's drawings carry: one set, where wide and narrow carry the same."""
    return {table([row for mark in drawing for row in mark.rows]) for drawing in figure.drawings}


def check_sentence(figure: Figure, mark: Mark) -> None:
    """Check that a sentence says the numbers of its row, each rounded once, and no other number."""
    says, columns = mark.says, figure.columns
    if columns == SENTENCE:
        return
    if columns[0] == "lane":
        assert says == _dated(*mark.rows[0][2:])
        return
    if columns[0] == "schedule":
        says += mark.rows[0][2] if says.endswith(("failure", "success")[int(mark.rows[0][2])]) else ""
    if columns == FOREST:
        says = f"{mark.rows[0][0]}: {re.findall(r': (-?[^:]*? interval .*?])', says)[0]}"
    values: list[float] = []
    for row in {mark.rows[0], mark.rows[-1]}:
        assert len(row) == len(columns), mark
        for column, cell in zip(columns, row, strict=True):
            try:
                values.append(float(cell))
            except ValueError:
                spoken = cell.replace("_", " ")
                assert column in UNSAID or spoken in mark.says.replace("_", " "), mark
                says = says.replace(cell, "").replace(spoken, "") if cell else says
        if columns[0] == "set":
            values.append(int(row[2]) / int(row[3]))
    said = NUMBER.findall(re.sub(r"[\d.]+% interval|\bof \d+ (?:seed|run)s?\b|score²", "", says))
    assert all(any(_is(word, value, figure) for value in values) for word in said), (mark, said, values)
    assert all(any(_is(word, value, figure) for word in said) for value in values), (mark, said, values)


def _dated(at: str, until: str, what: str) -> str:
    """Return what stands for a moment or a span; a day stands for its midnight."""
    times = [time[:19].replace("T", " ").removesuffix(" 00:00:00") for time in (at, until) if time]
    return f"{' to '.join(times)}: {what}".replace("\N{MINUS SIGN}", "-")


def _is(word: str, value: float, figure: Figure) -> bool:
    """Return whether a word is a number, rounded once to the digits that the word has."""
    factor, number = (100, float(word[:-1])) if word.endswith("%") else (1, float(word))
    if digits := DIGITS.get(figure.columns[0]):
        return number == float(f"{value:.{digits}g}")
    decimals = len(word.rstrip("%").partition(".")[2])
    return bool(abs(factor * value - number) <= 0.5 * 10**-decimals + 1e-9)
