"""Sealing registers with the decisions that the registration reaches on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.decisions.case import open_case
from toolkit.decisions.stored import decision_rows
from toolkit.files import replacing
from toolkit.registers.cards.documents import DOCUMENTS
from toolkit.registers.row_tables import DECISIONS
from toolkit.registers.study import open_study
from toolkit.registers.writer import check_place, rows_files
from toolkit.study.play.assemble import seal

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.prereg.registration import Registration
    from toolkit.registers.manifest import Manifest, RegistrationRef
    from toolkit.study.play.assemble import Assembly


def seal_decided(
    folder: Path, registration: Registration, named: RegistrationRef, assembly: Assembly, card: str | None
) -> Manifest:
    """Write a study's registers with what is decided on them.

    1. What is there is nothing, or an earlier build of the study.
    2. The registers are written beside it, and everything registered is decided on them.
    3. They are written again with the decisions and the card.
    4. They take the place of what was there, all at once.

    Args:
        folder: the repository to write; the study has the registration's name.
        registration: the registration.
        named: the registration as the manifest names it.
        assembly: the registers.
        card: source of the dataset card; none is written where there is none.

    Raises:
        IncompleteError: something else is in the folder, or it cannot be written; what was there is left.
        DamagedError: a row contradicts the schema; what was there is left.
    """
    study = registration.name
    check_place(folder, study, [*assembly.contents, *DOCUMENTS])  # 1
    with replacing(folder) as new:
        seal(new, study, named, assembly)  # 2
        engine = open_case(open_study(new), registration, recompute=True).engine
        decisions = engine.decide_all()
        rows = decision_rows(decisions, engine.inputs_sha256)
        name = DECISIONS.name
        files = rows_files({name: rows})[name]
        decided = replace(  # 3
            assembly,
            contents={**assembly.contents, **files},
            tables={**assembly.tables, name: tuple(files)},
            rows={**assembly.rows, name: len(rows)},
        )
        outcomes = [row | {"title": made.title} for row, made in zip(rows, decisions, strict=True)]
        return seal(new, study, named, decided, card, decisions=outcomes)  # 4
