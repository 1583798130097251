"""The words that a registration speaks: its own arms, regimes and pools, or those of the toolkit."""

from dataclasses import dataclass, field
from typing import Any

from toolkit.decisions.section import IDENTIFIER, Section
from toolkit.errors import RuleError
from toolkit.registers.columns import WORDS, Table
from toolkit.registers.schema import TABLES

SCALED = "group"
RESERVED = ("pool", "all")  # a pool names a split, and to loaders that name means all of them


@dataclass(frozen=True)
class Terms:
    """What the values of some columns can be.

    Args:
        words: column → its words; the columns left out have the toolkit's.
        scaling: how rewards are scaled where an endpoint does not say it; empty where no run of the
            registered matrix says how, because the study has no such thing.
    """

    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    scaling: str = SCALED

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that a run can have."""
        return self.words.get("arm", WORDS["arm"])

    def table(self, register: str) -> Table:
        """Return a register's table in these words."""
        return TABLES[register].with_words(self.words)


OF_TOOLKIT = Terms()


def read_terms(content: dict[str, Any], cells: list[Any]) -> Terms:
    """Read the words that a registration declares.

    Args:
        content: the section `words`, column → list of words; empty where it has none.
        cells: the lines of the matrix.

    Raises:
        RuleError: another column than those that can have own words, or what is no word.
    """
    section = Section(content, "words")
    words = {name: section.texts(name) for name in WORDS if section.has(name)}
    section.done()
    for name, chosen in words.items():
        # The words of a pool name splits, and those of an arm stand in tables of columns.
        wrong = [word for word in chosen if not IDENTIFIER.fullmatch(word) or (name, word) == RESERVED]
        if wrong or not chosen or len(set(chosen)) != len(chosen):
            raise RuleError(
                f"the words of {name!r} are not a list of words, each once",
                expected="letters, digits and underscores, a letter first, at most 60; no pool is called all",
                found=", ".join(wrong or chosen) or "none",
                where="words",
            )
    scaled = any(isinstance(cell, dict) and "scale_rewards" in cell for cell in cells)
    return Terms(words, SCALED if scaled else "")
