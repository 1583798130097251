"""The words that a registration speaks: its own arms, regimes and pools, or those of the toolkit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from toolkit.decisions.keys import OPTIONAL, Key, Value, alike, keys
from toolkit.decisions.section import IDENTIFIER, Section, identifier
from toolkit.errors import RuleError
from toolkit.registers.columns import ATTEMPTS, TREATMENTS, WORDS, MissingData, Table
from toolkit.registers.schema import TABLES

SCALED = "group"
TAKEN = frozenset(
    name for table in ("evaluations", "episodes", "runs", "task_pools") for name in TABLES[table].column_names
)
"""Columns whose names would be two things in a `where`, or in a mapping."""
RESERVED = ("pool", "all")  # a pool names a split, and to loaders that name means all of them
WORDS_OF = keys(*(Key(name, Value.TEXTS, f"its {name}s", OPTIONAL) for name in WORDS))
SCORES = keys(Key("range", Value.RANGE, "the lowest and the highest score of an episode"))
MISSING = keys(
    Key("counts_as", Value.TEXT, "what episodes without an outcome count as", choices=TREATMENTS),
    Key("most", Value.DECIMAL, "share of an evaluation's episodes that may be missing, from 0, below 1"),
    Key("attempts", Value.TEXT, "which of several attempts counts", next(iter(ATTEMPTS)), ATTEMPTS),
)


@dataclass(frozen=True)
class Terms:
    """What the values of some columns can be.

    Args:
        words: column → its words; the columns left out have the toolkit's.
        scores: the lowest and the highest score of an episode, where the study has scores.
        missing: what becomes of episodes without an outcome; None where every one has its own.
        attributes: attribute of a task → its words.
        scaling: how rewards are scaled where an endpoint does not say it; empty where no run of the
            registered matrix says how, because the study has no such thing.
    """

    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    scaling: str = SCALED
    scores: tuple[Fraction, Fraction] | None = None
    missing: MissingData | None = None
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that a run can have."""
        return self.words.get("arm", WORDS["arm"])

    def table(self, register: str) -> Table:
        """Return a register's table in these words."""
        return TABLES[register].with_words(self.words)


OF_TOOLKIT = Terms()


def read_terms(
    content: dict[str, Any],
    cells: list[Any],
    scores: dict[str, Any] | None = None,
    missing: dict[str, Any] | None = None,
    attributes: dict[str, Any] | None = None,
) -> Terms:
    """Read the words that a registration declares."""
    section = Section(content, "words", WORDS_OF)
    words = {name: section.texts(name) for name in WORDS if section.has(name)}
    section.done()
    for name, chosen in words.items():
        _check_words(name, chosen, "words")
    scaled = any(isinstance(cell, dict) and "scale_rewards" in cell for cell in cells)
    return Terms(
        words,
        SCALED if scaled else "",
        _range(scores) if scores else None,
        _missing_data(missing) if missing else None,
        _attributes(attributes or {}),
    )


def _check_words(name: str, chosen: tuple[str, ...], where: str) -> None:
    # The words of a pool name splits, and those of an arm stand in tables of columns.
    wrong = [word for word in chosen if not IDENTIFIER.fullmatch(word) or (name, word) == RESERVED]
    if wrong or not chosen or len(set(chosen)) != len(chosen):
        raise RuleError(
            f"the words of {name!r} are not a list of words, each once",
            expected="letters, digits and underscores, a letter first, at most 60; no pool is called all",
            found=", ".join(wrong or chosen) or "none",
            where=where,
        )


def _attributes(content: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    section = Section(content, "attributes", alike(content, Value.TEXTS))
    declared = {identifier(name, "attributes"): section.texts(name) for name in content}
    for name, chosen in declared.items():
        if name in TAKEN:
            raise section.wrong("an attribute of tasks has the name of a column", found=name)
        _check_words(name, chosen, "attributes")
    return declared


def _range(scores: dict[str, Any]) -> tuple[Fraction, Fraction]:
    section = Section(scores, "scores", SCORES)
    ends = section.range("range")
    section.done()
    return ends


def _missing_data(missing: dict[str, Any]) -> MissingData:
    section = Section(missing, "missing", MISSING)
    most = section.exact("most")
    read = MissingData(
        section.text("counts_as"),
        Fraction(0) if most is None else most,
        section.text("attempts"),
    )
    section.done()
    if not 0 <= read.most < 1:
        raise section.wrong("the share that may be missing is at least 0, and below 1", found=read.most)
    return read
