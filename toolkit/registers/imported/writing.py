"""Writing an imported study: its tables as registers, with all that is needed to check and to repeat it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.registers.arrow import shape
from toolkit.registers.cards.documents import repository_documents
from toolkit.registers.parquet import parquet_bytes
from toolkit.registers.row_tables import EPISODES
from toolkit.registers.schema import RUNS, TABLES
from toolkit.registers.vocabulary import WORDS
from toolkit.registers.writer import table_files, write_study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from toolkit.registers.arrow import Row
    from toolkit.registers.columns import Table
    from toolkit.registers.manifest import Manifest, RegistrationRef

LISTED_WORDS = 5


def write_imported(
    folder: Path,
    tables: Mapping[str, pl.DataFrame],
    *,
    study: str,
    registration: RegistrationRef,
    words: Mapping[str, tuple[str, ...]],
    documents: Mapping[str, bytes],
    card: str | None = None,
    outcomes: Sequence[Row] = (),
    is_demonstration: bool = False,
) -> Manifest:
    """Write a study's repository: beside its place, and put there once it is whole and verified.

    Args:
        folder: the repository; an earlier import of the same study is replaced.
        tables: the study's tables by name, as `tables_of` makes them.
        study: name of the study.
        registration: the registration that it belongs to.
        words: the words that the registration declares, by column.
        documents: other files of the repository by name.
        card: source of the dataset card; none is written where there is none.
        outcomes: rows of `decisions` for the card, each with the rule's `title`.
        is_demonstration: whether the card has to say that the registration proves nothing to others.

    Raises:
        IncompleteError: the folder holds something else, or cannot be written.
        DamagedError: a row contradicts the schema, or says a word that the registration does not declare;
            what was in the folder is left.
    """
    _check_words(tables[EPISODES.name], tables[RUNS.name], words)
    files = {name: _files(TABLES[name].with_words(words), table) for name, table in tables.items()}
    described = {}
    if card is not None:
        rows = {"runs": tables[RUNS.name].to_dicts(), "decisions": outcomes}
        described = repository_documents(
            card,
            files,
            registration=registration,
            rows=rows,
            words=words,
            is_demonstration=is_demonstration,
        )
    return write_study(
        folder,
        study=study,
        evidence="rows",
        registration=registration,
        files=files,
        documents={**documents, **described},
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
                found=", ".join(unknown[:LISTED_WORDS]) + (", ..." if len(unknown) > LISTED_WORDS else ""),
                remedy=f"translate it under [values.{column}] of the mapping, or declare it under [words] of "
                "the rules before they are frozen",
            )


def _files(table: Table, rows: pl.DataFrame) -> dict[str, bytes]:
    """Return a table's files by name, in the order of its rows: one a run for episodes."""
    table = table.narrowed(rows.columns)
    if table.name != EPISODES.name:
        return table_files(table.name, shape(table, rows.to_arrow()))
    return {
        f"{table.name}/{part['run_id'][0]}.parquet": parquet_bytes(table.name, shape(table, part.to_arrow()))
        for part in rows.partition_by("run_id", maintain_order=True)
    }
