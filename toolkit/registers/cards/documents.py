"""The documents of a dataset repository: for its readers the card, for machines the Croissant document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.registers.cards.croissant import croissant
from toolkit.registers.cards.dataset import dataset_card

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.registers.arrow import Row
    from toolkit.registers.cards.config import Config
    from toolkit.registers.manifest import RegistrationRef

CARD = "README.md"
CROISSANT = "croissant.json"
DOCUMENTS = (CARD, CROISSANT)


def repository_documents(
    source: str,
    configs: Sequence[Config],
    *,
    registration: RegistrationRef | None = None,
    rows: Mapping[str, Sequence[Row]] | None = None,
    is_demonstration: bool = False,
) -> dict[str, bytes]:
    """Return the documents of a repository by name; arguments and errors as `dataset_card`, `croissant`."""
    card = dataset_card(
        source, configs, registration=registration, rows=rows, is_demonstration=is_demonstration
    )
    return {CARD: card.encode(), CROISSANT: croissant(card, configs).encode()}
