"""The data page: every study's registers, what a column means, how to load them, and a box to ask them."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.registers.columns import Table
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.study import Study
from toolkit.website.examples import examples
from toolkit.website.material import Material
from toolkit.website.page import Page
from toolkit.website.registers import LARGEST_FILE, carried, every_study, manifest_copy, table_bytes


def pages(material: Material) -> Iterator[Page]:
    """Yield the data page, where there is any study."""
    studies = every_study(material)
    if not studies:
        return
    cases = {case.study.name: case for case in material.cases}
    asked: list[dict[str, Any]] = [
        {
            "study": study.name,
            "is_summary": study.is_summary,
            "examples": examples(study, cases.get(study.name)),
            "left_out": [table.name for table in study.tables if not carried(study, table.name)],
        }
        for study in studies
        if _any_carried(study)
    ]
    # The box opens on the study that holds rows: published figures are few.
    asked.sort(key=lambda entry: entry["study"] not in {s.name for s in studies if s.has("episodes")})
    yield Page(
        "data.html",
        "data.html",
        "Data: registers, columns, and a question of your own",
        "data",
        {
            "studies": [_study(study) for study in studies],
            "asked": asked,
            "schema": [_described(name, studies) for name in TABLES if any(s.has(name) for s in studies)],
            "largest_file": LARGEST_FILE,
            "schema_version": SCHEMA_VERSION,
        },
        ("query",),
    )


def _any_carried(study: Study) -> bool:
    return any(carried(study, table.name) for table in study.tables)


def _study(study: Study) -> dict[str, Any]:
    tables = [_table(study, table) for table in study.tables]
    return {
        "name": study.name,
        "evidence": study.manifest.evidence,
        "schema_version": study.manifest.schema_version,
        "code_version": study.manifest.code_version,
        "logical_sha256": study.manifest.logical_sha256,
        "registration": study.manifest.registration,
        "words": study.manifest.words,
        "manifest": manifest_copy(study.name),
        "tables": tables,
        "left_out": [table for table in tables if not table["carried"]],
        "bytes": sum(table["bytes"] for table in tables),
        "rows": sum(table["rows"] for table in tables),
        "card": "README.md" in study.manifest.files,
        "split": _split(study, tables[0]["name"]) if tables else "train",
    }


def _split(study: Study, table: str) -> str:
    """Return the split that a table's files make: the first part of their names, or `train`."""
    first = study.manifest.tables[table].files[0].rpartition("/")[2]
    return first.partition("-")[0] if "-00000-of-" in first else "train"


def _table(study: Study, table: Table) -> dict[str, Any]:
    entry = study.manifest.tables[table.name]
    return {
        "name": table.name,
        "meaning": table.meaning,
        "rows": entry.rows,
        "bytes": table_bytes(study, table.name),
        "files": len(entry.files),
        "sha256": entry.row_sha256,
        "carried": carried(study, table.name),
        "is_blob": table.is_blob,
        "command": f'toolkit sql "SELECT * FROM {table.name} LIMIT 10" --study {study.name}',
    }


def _described(name: str, studies: Sequence[Study]) -> dict[str, Any]:
    """Return a table of the schema with the columns that any study has, and which study leaves out which."""
    held = {s.name: s.table(name).column_names for s in studies if s.has(name)}
    known = {c.name: c for s in studies if s.has(name) for c in s.table(name).columns}
    columns = [known[c.name] for c in TABLES[name].columns if c.name in known]
    left_out = {s: [c.name for c in columns if c.name not in names] for s, names in held.items()}
    return {
        "table": TABLES[name],
        "columns": columns,
        "studies": list(held),
        "left_out": {study: names for study, names in left_out.items() if names},
    }
