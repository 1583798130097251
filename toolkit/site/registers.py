"""The files of registers and registrations on the site: to download, and as scripts that a page may load.

A page may not fetch. The evidence of a registration that restates another document is that document's
authors', and stays where it is.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from toolkit.files import read_bytes
from toolkit.prereg.chain import CHAIN, entries
from toolkit.prereg.evidence import CERTIFICATE_FILES, REVOCATION_FILES
from toolkit.prereg.record import EVIDENCE, FROZEN
from toolkit.prereg.registration import Registration
from toolkit.registers.manifest import MANIFEST_NAME
from toolkit.registers.study import Study
from toolkit.site.environment import brief, json_text
from toolkit.site.material import Material
from toolkit.site.page import registration_page, slug

# A larger file is not carried: a reader on a phone would load it for one question.
LARGEST_FILE = 4_000_000
# Of an episode, what a run's page shows; and of an answer, how many characters.
SHOWN_OF_EPISODE = (
    *("phase", "pool", "regime", "step", "task", "schedule", "schedule_seed", "prompt"),
    *("true_success", "observed_reward", "ended", "calls_charged", "budget", "differences"),
)
LONGEST_ANSWER = 400
_EVIDENCE = (".tsr", ".tsq", *CERTIFICATE_FILES, *REVOCATION_FILES)
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
    """Return whether the site carries every row of a table."""
    files, limit = study.manifest.tables[table].files, f"{table} below {LARGEST_FILE}"
    found: bool = study.kept(limit, lambda: all(carries(study, table, file) for file in files))
    return found


def carries(study: Study, table: str, file: str) -> bool:
    """Return whether the site carries one file of a table."""
    return not study.table(table).is_blob and study.manifest.files[file].bytes <= LARGEST_FILE


def rows_held(study: Study, table: str) -> list[Any]:
    """Return the rows of a table; none where a study lacks it."""
    return study.rows(table) if study.has(table) else []


def rows_by_run(study: Study, table: str) -> Mapping[str, list[Any]]:
    """Return the rows of a table by run, read once; nothing of a table that a study lacks."""

    def read() -> dict[str, list[Any]]:
        by_run: dict[str, list[Any]] = {}
        for row in rows_held(study, table):
            by_run.setdefault(row["run_id"], []).append(row)
        return by_run

    found: dict[str, list[Any]] = study.kept(f"rows of {table} by run", read)
    return found


def catalogue_script(study: str) -> str:
    """Return the name of the script that holds a study's manifest, and what that cannot say."""
    return f"{FOLDER}/{study}.js"


def register_script(study: str, file: str) -> str:
    """Return the name of the script that carries one file of a register."""
    return f"{FOLDER}/{study}/{file.removesuffix('.parquet')}.js"


def manifest_copy(study: str) -> str:
    """Return the name of the copy of a study's manifest."""
    return f"{FOLDER}/{study}/{MANIFEST_NAME}"


def register_files(material: Material) -> dict[str, bytes]:
    """Return scripts that carry registers, and manifests, by name; shared files are carried once."""
    written: dict[str, bytes] = {}
    at: dict[str, str] = {}  # SHA-256 → study and file that carry it
    for study in every_study(material):
        written.update(_of(study, at))
    return written


def _of(study: Study, at: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    manifest = read_bytes(study.folder / MANIFEST_NAME)
    yield manifest_copy(study.name), manifest
    elsewhere: dict[str, str] = {}
    for table in (table for table in study.tables if not table.is_blob):
        files, paths = study.files(table.name), study.paths(table.name)
        for path, (file, digest) in zip(paths, files.items(), strict=True):
            if not carries(study, table.name, file):
                continue
            key = at.setdefault(digest, f"{study.name}/{file}")
            if key != f"{study.name}/{file}":
                elsewhere[file] = key
                continue
            held = base64.b64encode(read_bytes(path)).decode()
            yield register_script(study.name, file), script(key, held)
    catalogue = {
        "manifest": manifest.decode(),
        "at": elsewhere,
        "runs": dict(_runs_of_files(study)),
        "blobs": [table.name for table in study.tables if table.is_blob],
        "largest_file": LARGEST_FILE,
    }
    yield catalogue_script(study.name), script(study.name, catalogue)


def _runs_of_files(study: Study) -> Iterator[tuple[str, str | None]]:
    """Yield the one run that a file is about where its name says another; none where it is of several."""
    for name, entry in study.manifest.tables.items():
        if len(entry.files) > 1 and "run_id" in entry.columns and carried(study, name):
            for file in entry.files:
                run = only_run(study.folder / file)
                if run != PurePosixPath(file).stem:
                    yield file, run


def only_run(path: Path) -> str | None:
    """Return the one run that a file is about, by its statistics."""
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


def played_files(material: Material) -> dict[str, bytes]:
    """Return the scripts that carry runs' played episodes, by name."""
    return {
        register_script(study, f"played/{slug(run)}"): script(
            f"{study}/played/{run}", list(map(_brief, played))
        )
        for study, runs in material.played.items()
        for run, played in runs.items()
        if not isinstance(played, str)
    }


def _brief(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page of a run shows of an episode's document; a long answer is cut."""
    calls = [
        {
            **shown_call(call),
            "key": " · ".join(map(str, call["key"] or ())),
            "answer": brief(json.dumps(call["answer"], ensure_ascii=False), LONGEST_ANSWER),
        }
        for call in document["calls"] or ()
    ]
    return {**{name: document[name] for name in SHOWN_OF_EPISODE}, "calls": calls}


def shown_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pages show of a call alike: its tool with arguments, and what happened to it."""
    arguments = call["arguments"]
    if isinstance(arguments, dict):
        arguments = ", ".join(f"{name}: {value}" for name, value in arguments.items())
    said = {name: call[name] or "" for name in ("fault", "blocked_by")}
    return {"tool": str(call["tool"]), "arguments": str(arguments), "charged": call["charged"], **said}


def every_registration(material: Material) -> dict[str, Registration]:
    """Return the registrations of a site by name: frozen ones, and those that its studies are decided by."""
    return {r.name: r for r in (*material.registrations, *(case.registration for case in material.cases))}


def frozen_files(registration: Registration) -> dict[str, bytes]:
    """Return the files of a registration that may be passed on, by their place in it."""
    folder = registration.folder
    listed = entries(read_bytes(folder / FROZEN), FROZEN)
    names = [FROZEN, *listed, CHAIN, *(entry.name for entry in registration.entries)]
    if not registration.record.is_restated:
        held = sorted(path.name for path in (folder / EVIDENCE).glob("*") if path.suffix in _EVIDENCE)
        names += [f"{EVIDENCE}/{name}" for name in held]
    return {name: read_bytes(folder / name) for name in names}


def download(registration: str, name: str) -> str:
    """Return where a file of a registration lies on the site."""
    return f"{_folder(registration)}/{name}"


def frozen_file_content(material: Material) -> dict[str, bytes]:
    """Return every registration's files, and the script that holds them all, by their names on the site."""
    content: dict[str, bytes] = {}
    for name, registration in every_registration(material).items():
        files = frozen_files(registration)
        content |= {download(name, place): held for place, held in files.items()}
        encoded = {place: base64.b64encode(held).decode() for place, held in files.items()}
        content[f"{FOLDER}/{_folder(name)}.js"] = script(_folder(name), encoded)
    return content


def _folder(registration: str) -> str:
    return str(PurePosixPath(registration_page(registration)).with_suffix(""))


def script(name: str, value: Any) -> bytes:
    """Return a script that leaves a value under a name for the page that loads it."""
    return f"({_GLOBAL}??={{}})[{json_text(name)}]={json_text(value)};\n".encode()
