"""Writing an imported study: its tables as registers, with all that is needed to check and to repeat it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import DamagedError
from toolkit.files import replacing, write_all
from toolkit.registers.arrow import shape
from toolkit.registers.card import dataset_card
from toolkit.registers.parquet import parquet_bytes
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.schema import RUNS, TABLES
from toolkit.registers.vocabulary import WORDS
from toolkit.registers.writer import check_place, seal_study, split_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from toolkit.registers.columns import Table
    from toolkit.registers.manifest import Manifest, RegistrationRef

SHOWN = 5


def write_imported(
    folder: Path,
    tables: Mapping[str, pl.DataFrame],
    *,
    study: str,
    registration: RegistrationRef,
    words: Mapping[str, tuple[str, ...]],
    card: str,
    documents: Mapping[str, bytes],
) -> Manifest:
    """Write a study's repository: beside its place, and put there once it is whole and verified.

    Args:
        folder: the repository; an earlier import of the same study is replaced.
        tables: the study's tables by name, as `tables_of` makes them.
        study: name of the study.
        registration: the registration that it belongs to.
        words: the words that the registration declares, by column.
        card: source of the dataset card.
        documents: other files of the repository by name.

    Raises:
        IncompleteError: the folder holds something else, or cannot be written.
        DamagedError: a row contradicts the schema, or says a word that the registration does not declare;
            what was in the folder is left.
    """
    check_place(folder, study, ())
    _check_words(tables[EPISODES.name], tables[RUNS.name], words)
    parts = {
        name: _parts(TABLES[name].with_words(words).narrowed(table.columns), table)
        for name, table in tables.items()
    }
    with replacing(folder) as new:
        for name, files in parts.items():
            write_all(new, {file: parquet_bytes(name, part) for file, part in files.items()})
        return seal_study(
            new,
            study=study,
            evidence="rows",
            registration=registration,
            files={name: list(files) for name, files in parts.items()},
            documents={
                **documents,
                "README.md": dataset_card(card, {n: t.height for n, t in tables.items()}).encode(),
            },
            words=words,
        )


def _check_words(episodes: pl.DataFrame, runs: pl.DataFrame, words: Mapping[str, tuple[str, ...]]) -> None:
    """Check that rows say only words that are declared."""
    for column, own in WORDS.items():
        said = (runs if column in runs.columns else episodes)[column].unique().sort().to_list()
        declared = words.get(column, own)
        unknown = [word for word in said if word not in declared]
        if unknown:
            raise DamagedError(
                f"the table says a word for {column} that the registration does not declare",
                expected=", ".join(declared),
                found=", ".join(unknown[:SHOWN]) + (", ..." if len(unknown) > SHOWN else ""),
                remedy=f"translate it under [values.{column}] of the mapping, or declare it under [words] of "
                "the rules before they are frozen",
            )


def _parts(table: Table, rows: pl.DataFrame) -> dict[str, Any]:
    """Return a table's files by name, in the order of its rows: one a run for episodes."""
    if table.name != EPISODES.name:
        return split_table(table.name, shape(table, rows.to_arrow()))
    return {
        f"{table.name}/{part['run_id'][0]}.parquet": shape(table, part.to_arrow())
        for part in rows.partition_by("run_id", maintain_order=True)
    }
