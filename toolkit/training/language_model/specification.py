"""What a language model's run is: what every run is, its recipe, and the model that it starts from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from toolkit.training.recipe import read_recipe
from toolkit.training.specification import Specification

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.training.recipe import Recipe


@dataclass(frozen=True)
class LanguageModelSpecification(Specification):
    """The specification of a language model's run.

    Its sizes and learning rate are those of the recipe; it has no surface tokens.

    Args:
        recipe: the recipe's document.
        model_commit: commit of the model that it starts from, or the SHA-256 of its files.
    """

    checkpoint_table: ClassVar[str] = "adapters"

    recipe: Mapping[str, Any] = field(default_factory=dict)
    model_commit: str = ""

    def document(self) -> dict[str, Any]:
        """Return the specification as JSON values."""
        return {**super().document(), "recipe": dict(self.recipe)}

    @property
    def settings(self) -> Recipe:
        """The recipe."""
        return read_recipe(self.recipe, self.run_id)


def specify_language_model(
    specification: Specification, recipe: Recipe, model_commit: str
) -> LanguageModelSpecification:
    """Return the specification of a language model's run.

    Args:
        specification: the run as its registration's matrix has it.
        recipe: the settings.
        model_commit: commit of the model that it starts from, or the SHA-256 of its files.
    """
    return LanguageModelSpecification(
        **{
            **asdict(specification),
            "learning_rate": recipe.optimizer.learning_rate,
            "surface_tokens": 0,
            "checkpoint_every": recipe.step.checkpoint_every,
        },
        recipe=recipe.document(),
        model_commit=model_commit,
    )


def read_specification(document: Mapping[str, Any]) -> Specification:
    """Return the specification that a document is, of either kind of run.

    Raises:
        TypeError, KeyError, ValueError: it is none of this package's.
    """
    kind = LanguageModelSpecification if "recipe" in document else Specification
    return kind(**{**document, "diagnosed": tuple(document["diagnosed"])})
