"""Build `registers/published/` from the transcribed figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.registers.card import dataset_card
from toolkit.registers.published import probe, protocol, training
from toolkit.registers.published.source import read_source
from toolkit.registers.writer import write_study

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.registers.manifest import Manifest, RegistrationRef

STUDY = "published"


def build_published(source_folder: Path, folder: Path, card: str, registration: RegistrationRef) -> Manifest:
    """Write the published study's repository; the same figures give the same bytes.

    Args:
        source_folder: the transcribed CSV files.
        folder: the repository to write.
        card: source of the dataset card.
        registration: the registration that the study belongs to.

    Raises:
        IncompleteError: a source is missing.
        DamagedError: a source contradicts the schema.
    """
    source = read_source(source_folder)
    rows = {
        "runs": training.runs(source),
        "evaluations": training.evaluations(source),
        "groups_summary": training.groups_summary(source),
        "luck_share_summary": training.luck_share_summary(source),
        "probe": probe.probe(source),
        "probe_checkpoints": probe.probe_checkpoints(source),
        "probe_clean_tasks": probe.probe_clean_tasks(source),
        "probe_diagnostic_tasks": probe.probe_diagnostic_tasks(source),
        "intervals": protocol.intervals(source),
        "events": protocol.events(source),
    }
    documents = {f"source/{name}": content for name, content in source.content.items()}
    documents["README.md"] = dataset_card(card, {name: len(listed) for name, listed in rows.items()}).encode()
    return write_study(
        folder,
        study=STUDY,
        evidence="summary",
        registration=registration,
        rows=rows,
        documents=documents,
    )
