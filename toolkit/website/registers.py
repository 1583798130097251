"""The registers' own files as scripts of the site: where a page may not fetch, it may load scripts."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.files import read_bytes
from toolkit.registers.manifest import MANIFEST_NAME
from toolkit.registers.study import Study
from toolkit.website.environment import json_text
from toolkit.website.material import Material

# A table whose files together are larger is not carried: a reader on a phone would load it for one question.
LARGEST_TABLE = 4_000_000
# Where the scripts lie, and the global that they fill.
FOLDER = "data"
_GLOBAL = "globalThis.toolkitRegisters"


def every_study(material: Material) -> tuple[Study, ...]:
    """Return the studies of a site: those that are decided first, then those that hold tasks alone."""
    named = {case.study.name: case.study for case in material.cases}
    return tuple({**named, **{s.name: s for s in material.studies if s.name not in named}}.values())


def table_bytes(study: Study, table: str) -> int:
    """Return the size of a table's files together."""
    return sum(study.manifest.files[name].bytes for name in study.manifest.tables[table].files)


def carried(study: Study, table: str) -> bool:
    """Return whether the site carries a table's rows."""
    return table_bytes(study, table) <= LARGEST_TABLE


def catalogue_script(study: str) -> str:
    """Return the name of the script that lists a study's tables and files."""
    return f"{FOLDER}/{study}.js"


def register_script(study: str, file: str) -> str:
    """Return the name of the script that carries one file of a register."""
    return f"{FOLDER}/{study}/{file.removesuffix('.parquet')}.js"


def manifest_copy(study: str) -> str:
    """Return the name of the copy of a study's manifest."""
    return f"{FOLDER}/{study}/{MANIFEST_NAME}"


def register_files(material: Material) -> dict[str, bytes]:
    """Return the scripts that carry the registers, and the manifests, by name.

    Every file was checked against its manifest as it was read; readers check it again.

    Raises:
        IncompleteError: a file of a register is missing.
        DamagedError: a file is not the one that its manifest names.
    """
    return {name: content for study in every_study(material) for name, content in _of(study)}


def _of(study: Study) -> Iterator[tuple[str, bytes]]:
    manifest = read_bytes(study.folder / MANIFEST_NAME)
    yield manifest_copy(study.name), manifest
    tables: dict[str, Any] = {}
    for table in study.tables:
        if not carried(study, table.name):
            continue
        entry = study.manifest.tables[table.name]
        files = []
        for name, path in zip(entry.files, study.paths(table.name), strict=True):
            recorded = study.manifest.files[name]
            known = {"sha256": recorded.sha256, "bytes": recorded.bytes, "rows": recorded.rows}
            if len(entry.files) > 1 and "run_id" in entry.columns:
                known["run"] = _only_run(path)
            files.append({"file": name, **known})
            held = base64.b64encode(read_bytes(path)).decode()
            yield register_script(study.name, name), script(f"{study.name}/{name}", held)
        tables[table.name] = {"rows": entry.rows, "columns": list(entry.columns), "files": files}
    catalogue = {"manifest": manifest.decode(), "tables": tables}
    yield catalogue_script(study.name), script(study.name, catalogue)


def _only_run(path: Path) -> str | None:
    """Return the one run that a file is about, by its statistics: queries for another need not load it."""
    import pyarrow.parquet as pq

    held = pq.read_metadata(path)
    at = held.schema.names.index("run_id")
    runs = set()
    for group in range(held.num_row_groups):
        statistics = held.row_group(group).column(at).statistics
        if statistics is None or not statistics.has_min_max:
            return None
        runs |= {statistics.min, statistics.max}
    return str(runs.pop()) if len(runs) == 1 else None


def script(name: str, value: object) -> bytes:
    """Return a script that leaves a value under a name, for pages to find."""
    return f"({_GLOBAL}??={{}})[{json_text(name)}]={json_text(value)};\n".encode()
