"""The data page: every study's registers, what a column means, and how to load them."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.study import Study
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.registers import LARGEST_FILE, carried, every_study, manifest_copy, table_bytes


def pages(material: Material) -> Iterator[Page]:
    """Yield the data page, where there is any study."""
    studies = every_study(material)
    if not studies:
        return
    yield Page(
        "data.html",
        "data.html",
        "Data: registers and columns",
        "data",
        {
            "studies": [_study(study) for study in studies],
            "schema": [_described(name, studies) for name in TABLES if any(s.has(name) for s in studies)],
            "largest_file": LARGEST_FILE,
            "schema_version": SCHEMA_VERSION,
        },
    )


def _study(study: Study) -> dict[str, Any]:
    tables = [
        {
            "table": table,
            "entry": study.manifest.tables[table.name],
            "bytes": table_bytes(study, table.name),
            "carried": carried(study, table.name),
        }
        for table in study.tables
    ]
    # A table's files make a split: the first part of their names, or `train`.
    file = next((name.rpartition("/")[2] for t in study.tables for name in study.files(t.name)), "")
    split = file.partition("-")[0] if "-00000-of-" in file else "train"
    return {
        "name": study.name,
        "manifest": study.manifest,
        "manifest_copy": manifest_copy(study.name),
        "tables": tables,
        "split": split,
    }


def _described(name: str, studies: Sequence[Study]) -> dict[str, Any]:
    """Return a table of the schema with the columns that any study has, and which study leaves out which."""
    held = {s.name: s.table(name) for s in studies if s.has(name)}
    known = {column.name: column for table in held.values() for column in table.columns}
    columns = [known[c.name] for c in TABLES[name].columns if c.name in known]
    left_out = {s: [c.name for c in columns if not table.column(c.name)] for s, table in held.items()}
    return {
        "table": TABLES[name],
        "columns": columns,
        "studies": list(held),
        "left_out": {study: names for study, names in left_out.items() if names},
    }
