"""What a language model's run is: what every run is, its recipe, and the model that it starts from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from toolkit.training.specification import Specification

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class LanguageModelSpecification(Specification):
    """The specification of a language model's run.

    Its sizes and learning rate are those of the recipe; it has no surface tokens.

    Args:
        recipe: the recipe's document.
        model_sha256: of the files of the model that it starts from; empty for one that the recipe names by
            the commit of its repository.
    """

    checkpoint_table: ClassVar[str] = "adapters"

    recipe: Mapping[str, Any] = field(default_factory=dict)
    model_sha256: str = ""

    def document(self) -> dict[str, Any]:
        """Return the specification as JSON values."""
        return {**super().document(), "recipe": dict(self.recipe)}
