"""A study's card, made anew from its source and what the registers hold; no row is touched."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from toolkit.decisions.case import Case
from toolkit.errors import UsageError, VerificationError
from toolkit.files import LARGEST_ROWS, read_bytes, read_text, write_all
from toolkit.findings import card_text, read_findings
from toolkit.registers import manifest as manifests
from toolkit.registers.arrow import Row
from toolkit.registers.cards import repository_documents
from toolkit.registers.row_tables import DECISIONS
from toolkit.registers.schema import RUNS, TABLES


def card_documents(case: Case, cards: Path) -> dict[str, bytes]:
    """Return the documents of a study's repository, by name, as their source and the registers give them."""
    study, manifest = case.study, case.study.manifest
    if not study.has(DECISIONS.name):
        raise UsageError(
            "the card is built with the registers, which hold no decisions",
            found=study.name,
            remedy=f"toolkit registers build {study.name}, or import it again",
        )
    stored = {row["rule"]: row for row in study.rows(DECISIONS.name)}
    return repository_documents(
        read_text(cards / f"{study.name}.md"),
        {
            name: {
                file: read_bytes(path, LARGEST_ROWS)
                for file, path in zip(manifest.tables[name].files, study.paths(name), strict=True)
            }
            for name in TABLES
            if study.has(name)
        },
        registration=manifest.registration,
        rows={
            "runs": list[Row](study.rows(RUNS.name)),
            "decisions": [{**stored[made.rule], "title": made.title} for made in case.binding],
        },
        words=manifest.words,
        standing=str(case.standing),
        findings=card_text(read_findings(cards, [case]), study.name),
    )


def check_card(case: Case, documents: Mapping[str, bytes]) -> None:
    """Check that a study's documents are those given."""
    entries = case.study.manifest.files
    differing = [n for n, made in documents.items() if n not in entries or entries[n].sha256 != _sha256(made)]
    if differing:
        raise VerificationError(
            "the study's card is not what its source and the registers give",
            found=", ".join(differing),
            where=case.study.folder,
            remedy=f"toolkit registers card {case.study.name}",
        )


def write_card(case: Case, documents: Mapping[str, bytes]) -> manifests.Manifest:
    """Write a study's documents, and the manifest that names them; rows and their hashes stay."""
    folder, manifest = case.study.folder, case.study.manifest
    entries = {name: manifests.FileEntry(_sha256(made), len(made)) for name, made in documents.items()}
    made = replace(manifest, files=dict(sorted((manifest.files | entries).items())))
    write_all(folder, documents)
    manifests.write_manifest(folder, made)
    return made


def _sha256(content: bytes) -> str:
    return sha256(content).hexdigest()
