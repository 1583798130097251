"""Take the numeric tables out of the paper's LaTeX source.

    python tests/golden/extract_tables.py PAPER.tex > tests/golden/paper_tables.json

Every cell is kept as the text printed there. The paper itself is not part of this project.
"""

import json
import re
import sys
from pathlib import Path

TABLES = {
    "tab:c2": ["c2"],
    "tab:c4": ["c4"],
    "tab:c2_secondary": ["c2_secondary"],
    "tab:finals": ["finals"],
    "tab:curves": ["curves"],
    "tab:groups": ["groups"],
    "tab:crosshw": ["cross_stack"],
    "tab:probe": ["probe"],
    "tab:probe_extra": ["probe_outcome", "probe_transition", "probe_fractions"],
}


def rows(tabular: str) -> list[list[str]]:
    """Return the body rows of a tabular, each a list of cells."""
    body = tabular.split(r"\midrule", 1)[1].split(r"\bottomrule", 1)[0]
    body = re.sub(r"\\(midrule|addlinespace)", "", body)
    lines = [line.strip() for line in body.split(r"\\")]
    return [[cell.strip() for cell in line.split("&")] for line in lines if line]


def main() -> None:
    """Print the tables as JSON."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    tables: dict[str, list[list[str]]] = {}
    for table in re.findall(r"\\begin\{table\}.*?\\end\{table\}", text, re.DOTALL):
        label = re.search(r"\\label\{(tab:\w+)\}", table)
        if label is None or label[1] not in TABLES:
            continue
        tabulars = re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", table, re.DOTALL)
        tables |= {name: rows(body) for name, body in zip(TABLES[label[1]], tabulars, strict=True)}
    if len(tables) != sum(map(len, TABLES.values())):
        sys.exit(f"not all tables were found: {sorted(tables)}")
    json.dump(tables, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
