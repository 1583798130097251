"""What a layout must not do, told from the printed text alone."""

import re
from collections import Counter

from rich.cells import cell_len

NOTE = "not shown: "
TO_PASTE = re.compile(r" *toolkit( [^\s,;]+)+")


def too_long(text: str, columns: int) -> list[str]:
    """Return the lines that are too long; a single long word may be one, and a command to paste."""
    return [
        line
        for line in text.splitlines()
        if cell_len(line) > columns and len(line.split()) > 1 and not TO_PASTE.fullmatch(line)
    ]


def unlike(narrow: str, wide: str) -> Counter[str]:
    """Return the words by which a narrow output differs from a wide one: pieces of words, and lost ones.

    Where columns are left out of the narrow output, and it says so, it may lack words; it never has others.
    """
    mine, all_of_them = _words(narrow), _words(wide)
    return mine - all_of_them if NOTE in narrow else (mine - all_of_them) + (all_of_them - mine)


def _words(text: str) -> Counter[str]:
    lines = (line for line in text.splitlines() if not line.startswith(NOTE))
    return Counter(word for line in lines for word in line.split() if word.strip("─"))
