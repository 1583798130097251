"""The documents of a dataset repository: for its readers the card, for machines the Croissant document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.registers.cards.config import config_of
from toolkit.registers.cards.croissant import croissant
from toolkit.registers.cards.dataset import dataset_card
from toolkit.registers.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.registers.arrow import Row
    from toolkit.registers.manifest import RegistrationRef

CARD = "README.md"
CROISSANT = "croissant.json"
DOCUMENTS = (CARD, CROISSANT)


def repository_documents(
    source: str,
    files: Mapping[str, Mapping[str, bytes]],
    *,
    registration: RegistrationRef | None = None,
    rows: Mapping[str, Sequence[Row]] | None = None,
    words: Mapping[str, tuple[str, ...]] | None = None,
    is_demonstration: bool = False,
) -> dict[str, bytes]:
    """Return the documents of a repository by name.

    Its Parquet files are given by table and name, in the order of the card's configurations, and `words` are
    the study's own by column where it does not use the toolkit's; the rest as for `dataset_card`.
    """
    configs = [config_of(TABLES[name].with_words(words or {}), parts) for name, parts in files.items()]
    card = dataset_card(
        source, configs, registration=registration, rows=rows, is_demonstration=is_demonstration
    )
    return {CARD: card.encode(), CROISSANT: croissant(card, configs).encode()}
