"""The tables and figures of a paper, as data: captions, and the queries that give their numbers."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError
from toolkit.files import read_text

FILE = "paper.toml"
KINDS = ("table", "figure")
DRAWINGS = ("", "curves", "ratios")
NO_ROWS = "the study has no such rows"


@dataclass(frozen=True)
class Part:
    """A table within a table or figure of the paper.

    Args:
        title: what it holds; empty where it is all that there is.
        needs: tables of registers that the query reads.
        query: a SELECT over a study's registers.
        draw: how its answer is drawn; empty where it is shown as a table alone.
        none: why a study has no such rows, where its registers have the tables.
    """

    title: str
    needs: tuple[str, ...]
    query: str
    draw: str
    none: str


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Args:
        id: its label in the paper.
        title: what it is, in few words.
        kind: `table` or `figure`.
        caption: what it shows.
        agrees: how far the registers give what is printed there, as far as tests hold it.
        parts: queries that give its numbers.
        rules: rules whose outcome it states, where it states outcomes.
        lacks: what cannot be had for any study, and why.
    """

    id: str
    title: str
    kind: str
    caption: str
    agrees: str
    parts: tuple[Part, ...]
    rules: tuple[str, ...]
    lacks: str


@dataclass(frozen=True)
class Paper:
    """A paper.

    Args:
        title: its title.
        about: which study is its own, and what the others are beside it.
        study: the name of the study that it reports.
        beside: studies of the same protocol, at the same steps; all where none is named.
        items: its tables and figures, in order.
    """

    title: str
    about: str
    study: str
    items: tuple[Item, ...]
    beside: tuple[str, ...] = ()

    def reads(self, study: str) -> bool:
        """Whether its queries mean what they say in a study."""
        return not self.beside or study in (self.study, *self.beside)


def read_paper(cards: Path) -> Paper | None:
    """Read what a project says of its paper; None where it has none.

    Raises:
        DamagedError: malformed.
    """
    path = cards / FILE
    if not path.is_file():
        return None
    try:
        document = tomllib.loads(read_text(path))
        shared = {name: str(text).strip() for name, text in document.get("with", {}).items()}
        items = tuple(_item(entry, shared) for entry in document["item"])
        paper = Paper(
            document["title"], document["about"], document["study"], items, tuple(document.get("beside", ()))
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise DamagedError(
            "the list of the paper's tables and figures cannot be read",
            expected="title, about, study; [[item]] with id, title, kind, caption, [[item.part]] or rules",
            found=str(error),
            where=path,
        ) from None
    named = [item.id for item in items]
    if len(set(named)) != len(named):
        raise DamagedError(
            "a table or figure of the paper is named twice", found=", ".join(named), where=path
        )
    return paper


def _item(entry: dict[str, Any], shared: dict[str, str]) -> Item:
    return Item(
        str(entry["id"]),
        str(entry["title"]),
        _one_of(entry["kind"], KINDS),
        str(entry["caption"]),
        str(entry.get("agrees", "")),
        tuple(_part(part, shared) for part in entry.get("part", ())),
        tuple(map(str, entry.get("rules", ()))),
        str(entry.get("lacks", "")),
    )


def _part(part: dict[str, Any], shared: dict[str, str]) -> Part:
    query, parts = str(part["query"]).strip(), ", ".join(shared[name] for name in part.get("with", ()))
    return Part(
        str(part.get("title", "")),
        tuple(map(str, part["needs"])),
        f"WITH {parts} {query}" if parts else query,
        _one_of(part.get("draw", ""), DRAWINGS),
        str(part.get("none", NO_ROWS)),
    )


def _one_of(word: str, words: tuple[str, ...]) -> str:
    if word not in words:
        raise ValueError(f"{word!r} is none of {', '.join(filter(None, words))}")
    return word
