"""A study and its registration as one RO-Crate: what is in it, whose licence it has, each file's hash.

Source: www.researchobject.org/ro-crate, specification 1.2.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from toolkit.errors import IncompleteError
from toolkit.files import LARGEST_ROWS, read_bytes
from toolkit.prereg.record import EVIDENCE
from toolkit.prereg.registration import Registration
from toolkit.registers.cards.documents import CROISSANT
from toolkit.registers.manifest import MANIFEST_NAME
from toolkit.registers.study import Study
from toolkit.study.exports.models import last_date

METADATA = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/crate/1.2"
MEDIA_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".json": "application/json",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".toml": "application/toml",
    ".tsr": "application/timestamp-reply",
    ".tsq": "application/timestamp-query",
    ".pem": "application/x-pem-file",
}

Entity = dict[str, Any]


def crate(study: Study, registration: Registration | None) -> Iterator[tuple[str, bytes]]:
    """Yield the crate's files by path, its metadata last.

    They are the study's own, each compared with its manifest, and the registration's. The evidence of a
    document that is restated is its authors', and is not copied.

    Raises:
        IncompleteError: the study has no card, which says its name and licence, or a file is missing.
        DamagedError: a file is not the manifest's.
    """
    if CROISSANT not in study.manifest.files:
        raise IncompleteError(
            "nothing says the name and the licence that an RO-Crate needs",
            expected=CROISSANT,
            where=study.folder,
            remedy="give the study a card",
        )
    files = {}
    for name, path in {**_of_study(study), **_of_registration(study, registration)}.items():
        content = read_bytes(path, LARGEST_ROWS)
        files[name] = _file(name, content)
        yield name, content
    study.prove(CROISSANT)
    said = json.loads(read_bytes(study.folder / CROISSANT))
    folders = _folders(study, registration, list(files))
    inside = {part["@id"] for folder in folders for part in folder["hasPart"]}
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": said["name"],
        "description": said["description"],
        "datePublished": f"{last_date(study, registration):%Y-%m-%d}",
        "license": {"@id": said["license"]},
        "keywords": ", ".join(said["keywords"]),
        "hasPart": [_ref(folder["@id"]) for folder in folders] + [_ref(n) for n in files if n not in inside],
    }
    about = {"@id": METADATA, "@type": "CreativeWork", "about": _ref("./"), "conformsTo": _ref(PROFILE)}
    licence = {"@id": said["license"], "@type": "CreativeWork", "name": said["license"]}
    graph = [about, root, licence, *folders, *files.values()]
    document = {"@context": f"{PROFILE}/context", "@graph": graph}
    yield METADATA, f"{json.dumps(document, indent=1, ensure_ascii=False)}\n".encode()


def _of_study(study: Study) -> dict[str, Path]:
    for name in study.manifest.files:
        study.prove(name)
    return {name: study.folder / name for name in [*study.manifest.files, MANIFEST_NAME]}


def _of_registration(study: Study, registration: Registration | None) -> dict[str, Path]:
    """Return a registration's files; none where the study carries them itself."""
    if registration is None or registration.folder.is_relative_to(study.folder):
        return {}
    found = {}
    for path in sorted(registration.folder.rglob("*")):
        name = path.relative_to(registration.folder)
        theirs = registration.record.is_restated and name.parts[0] == EVIDENCE
        if path.is_file() and not theirs and not any(part.startswith(".") for part in name.parts):
            found[f"prereg/{registration.name}/{name.as_posix()}"] = path
    return found


def _folders(study: Study, registration: Registration | None, names: list[str]) -> list[Entity]:
    """Return an entity a table, and one for the registration."""
    described = {f"{table.name}/": table.meaning for table in study.tables}
    if registration is not None:
        where = f"prereg/{registration.name}/"
        described[where] = f"{registration.title}. The SHA-256 of the frozen files is {registration.sha256}."
    parts = {folder: [name for name in names if name.startswith(folder)] for folder in described}
    return [
        {
            "@id": folder,
            "@type": "Dataset",
            "name": folder.rstrip("/"),
            "description": described[folder],
            "hasPart": [_ref(name) for name in held],
        }
        for folder, held in parts.items()
        if held
    ]


def _file(name: str, content: bytes) -> Entity:
    media = MEDIA_TYPES.get(Path(name).suffix, "text/plain")
    size, digest = str(len(content)), sha256(content).hexdigest()
    return {
        "@id": name,
        "@type": "File",
        "name": name,
        "encodingFormat": media,
        "contentSize": size,
        "sha256": digest,
    }


def _ref(name: str) -> dict[str, str]:
    return {"@id": name}
