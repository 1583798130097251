"""The table of tamperings, as commands notice them, in SECURITY.md.

    python -m tests.tampering            measures it and writes it there
    python -m tests.tampering --print    prints it

It takes minutes: every command is run on every tampering.
"""

import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor

from tests.conftest import CHECKOUT
from tests.tampering.measure import COMMANDS, cells_of
from tests.tampering.of_registrations import REGISTRATIONS
from tests.tampering.of_rows import ROWS
from tests.tampering.tampering import Tampering

TAMPERINGS = (*ROWS, *REGISTRATIONS)
DOCUMENT = CHECKOUT / "SECURITY.md"
START, END = "<!-- tamperings -->\n", "<!-- /tamperings -->"


def table(measured: Iterable[tuple[Tampering, Mapping[str, str]]]) -> str:
    """Return the table, in Markdown."""
    heading = ("tampering", *(f"`{name}`" for name in COMMANDS))
    lines = [line(heading), line("---" for _ in heading)]
    for tampering, cells in measured:
        lines.append(line((named(tampering), *(cells[name] for name in COMMANDS))))
    return "\n".join(lines) + "\n"


def line(cells: Iterable[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def named(tampering: Tampering) -> str:
    """Return a tampering's name as the table has it; with the limit, where there is one."""
    return tampering.name + (f" (limit: {tampering.limit})" if tampering.limit else "")


def cells_at(number: int) -> dict[str, str]:
    """Return what commands say of a tampering, by its place in the list: its function cannot be sent."""
    return cells_of(TAMPERINGS[number])


def written() -> dict[str, dict[str, str]]:
    """Return the table that stands in SECURITY.md: name of the tampering → command → cell."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    rows = [[cell.strip() for cell in row.strip()[1:-1].split("|")] for row in text.splitlines()[2:]]
    return {row[0]: dict(zip(COMMANDS, row[1:], strict=True)) for row in rows}


def main() -> None:
    """Measure and write, or print."""
    with ProcessPoolExecutor(2) as processes:
        measured = table(zip(TAMPERINGS, processes.map(cells_at, range(len(TAMPERINGS))), strict=True))
    if "--print" in sys.argv:
        print(measured)
        return
    head, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(START)
    DOCUMENT.write_text(f"{head}{START}{measured}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
