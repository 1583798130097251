"""Build `registers/published/` from the transcribed figures."""

import tempfile
from collections.abc import Collection
from pathlib import Path

from toolkit.errors import DamagedError
from toolkit.registers.arrow import Row
from toolkit.registers.cards.dataset import repository_documents
from toolkit.registers.derivation import compare
from toolkit.registers.manifest import Manifest, RegistrationRef
from toolkit.registers.published import figures
from toolkit.registers.published.source import read_source
from toolkit.registers.study import Study
from toolkit.registers.writer import compare_built, rows_files, write_study

STUDY = "published"
SOURCE = "source"
REGISTRATION = "paired-rollouts"

# Each has the name of the function that makes it.
_TABLES = (
    *(figures.runs, figures.evaluations, figures.groups_summary, figures.luck_share_summary),
    *(figures.probe, figures.probe_checkpoints, figures.probe_clean_tasks, figures.probe_diagnostic_tasks),
    *(figures.intervals, figures.events),
)


def build_published(source_folder: Path, folder: Path, card: str, registration: RegistrationRef) -> Manifest:
    """Write the published study's repository; the same figures give the same bytes."""
    source, rows = read_source(source_folder), _rows(source_folder, [made.__name__ for made in _TABLES])
    files = rows_files(rows)
    documents = repository_documents(card, files, registration=registration, rows=rows)
    return write_study(
        folder,
        study=STUDY,
        evidence="summary",
        registration=registration,
        files=files,
        documents={f"{SOURCE}/{name}": content for name, content in source.content.items()} | documents,
    )


def check_figures(study: Study, tables: Collection[str]) -> None:
    """Check that rows of the published study are what its transcribed figures give."""
    if (study.folder / SOURCE).is_dir():
        for name, rows in _rows(study.folder / SOURCE, tables).items():
            if study.has(name):
                compare(name, rows, study.rows(name))


def _rows(source_folder: Path, tables: Collection[str]) -> dict[str, list[Row]]:
    """Return the rows of some tables."""
    source = read_source(source_folder)
    try:
        return {made.__name__: made(source) for made in _TABLES if made.__name__ in tables}
    except (KeyError, ValueError, ArithmeticError) as error:
        raise DamagedError(
            "the transcribed figures are not complete",
            found=f"{type(error).__name__}: {error}",
            where=source_folder,
        ) from None


def check_published(source_folder: Path, folder: Path, card: str, registration: RegistrationRef) -> Manifest:
    """Check that a repository is, byte for byte, what its sources give; arguments as `build_published`."""
    with tempfile.TemporaryDirectory() as scratch:
        manifest = build_published(source_folder, Path(scratch), card, registration)
        compare_built(folder, Path(scratch), manifest, f"toolkit registers build {STUDY}")
    return manifest
