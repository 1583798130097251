"""Sealing registers with the decisions that the registration reaches on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.decisions.case import open_case
from toolkit.decisions.stored import decision_rows
from toolkit.registers.arrow import to_arrow
from toolkit.registers.parquet import parquet_bytes
from toolkit.registers.row_tables import DECISIONS
from toolkit.registers.study import open_study
from toolkit.registers.writer import parquet_name
from toolkit.study.assemble import seal

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.prereg.registration import Registration
    from toolkit.registers.manifest import Manifest, RegistrationRef
    from toolkit.study.assemble import Assembly


def seal_decided(
    folder: Path, registration: Registration, named: RegistrationRef, assembly: Assembly, card: str | None
) -> Manifest:
    """Write a study's registers, decide everything registered on them, and store what was decided.

    Args:
        folder: the repository to write; the study has the registration's name.
        registration: the registration.
        named: the registration as the manifest names it.
        assembly: the registers.
        card: source of the dataset card; none is written where there is none.

    Raises:
        IncompleteError, DamagedError: as `seal`.
    """
    seal(folder, registration.name, named, assembly)
    engine = open_case(open_study(folder), registration, recompute=True).engine
    rows = decision_rows(engine.decide_all(), engine.inputs_sha256)
    name = DECISIONS.name
    file = parquet_name(name)
    decided = replace(
        assembly,
        contents={**assembly.contents, file: parquet_bytes(name, to_arrow(DECISIONS, rows))},
        tables={**assembly.tables, name: (file,)},
        rows={**assembly.rows, name: len(rows)},
    )
    return seal(folder, registration.name, named, decided, card)
