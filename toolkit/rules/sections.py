"""Tables of a rules file: the base of their types, and how they are parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from toolkit.errors import RuleError, did_you_mean
from toolkit.rules.expressions import Expression, parse
from toolkit.structs import Document, about, plainly

DECIMAL = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
IDENTIFIER = re.compile(r"[A-Za-z]\w{0,59}", re.ASCII)

T = TypeVar("T", bound=Document)

Text = Annotated[str, Meta(min_length=1)]
Texts = tuple[Text, ...]
Wholes = tuple[int, ...]
Exact = Annotated[str, Meta(pattern=rf"\A(?a:{DECIMAL.pattern})\Z")]
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Identifier = Annotated[str, Meta(pattern=rf"\A(?a:{IDENTIFIER.pattern})\Z")]
Spans = Annotated[Texts, about("spans of a document frozen elsewhere that it restates")]


class Table(Document, frozen=True, kw_only=True):
    """A table of a rules file that has a name, such as `[rules.H1]`."""

    id: str = ""

    derived: ClassVar[tuple[str, ...]] = ("id",)
    """Fields that are no keys of the table."""
    only: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {}
    """Key → another key, and its values with which the first is there; an empty value: left out."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Keys of `only` that may be left out where they apply."""


class Range(tuple[Fraction, Fraction]):
    """Two decimal strings, rising."""

    __slots__ = ()

    @classmethod
    def decoded(cls, ends: Any) -> Range:
        """Parse a list of two decimal strings."""
        if not isinstance(ends, list) or len(ends) != 2:  # noqa: PLR2004 - a range has two ends
            raise ValueError(f"Expected two decimal strings, got {ends!r}")
        low, high = map(exact_number, ends)
        if low >= high:
            raise ValueError(f"the range {ends} does not rise")
        return cls((low, high))


class Formula(str):  # noqa: SLOT000 - it has its expression in its dictionary
    """A test of a criterion, or the formula of a statistic, with what it is parsed to."""

    expression: Expression

    @classmethod
    def decoded(cls, text: Any) -> Formula:
        """Parse a test."""
        if not isinstance(text, str):
            raise TypeError(f"Expected `str`, got {text!r}")
        formula = cls(text)
        formula.expression = parse(text, "")
        return formula


def exact_number(text: object) -> Fraction:
    """Return a decimal string as a fraction."""
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise ValueError(f"Expected a decimal string, as '-0.03', got {str(text)[:40]!r}")
    return Fraction(text)


def read(kind: type[T], content: object, where: str, **derived: object) -> T:
    """Return a table of a rules file; fields that are no keys of it are `derived`."""
    try:
        if isinstance(content, dict) and issubclass(kind, Table):
            _check_keys(kind, content)
            content = {**content, **derived}
        return msgspec.convert(content, kind, dec_hook=_decoded)
    except RuleError as error:
        raise error.restated(where=error.where or where) from None
    except (ValueError, RecursionError) as error:
        said, _, path = plainly(content, str(error)).partition(" - at `$")
        path = path.rstrip("`")
        unknown = re.match(r"Object contains unknown field `(\w+)", said)
        known = list(_keys_at(kind, path))
        if not path and isinstance(content, dict) and issubclass(kind, Table):
            known = [key for key in known if applies(kind, key, content)]
        raise RuleError(
            "a table of the rules is invalid",
            expected=f"no keys but {', '.join(known)}" if unknown else None,
            found=said,
            where=re.sub(r"(^|, )\.", r"\1", f"{where}{path}").rstrip(", ") or "rules.toml",
            remedy=did_you_mean(unknown[1], known) if unknown else None,
        ) from None


def identifier(text: str, where: str) -> str:
    """Return a name that can be in tests, file names and addresses."""
    if not IDENTIFIER.fullmatch(text):
        raise RuleError(
            "a name has a character that it cannot have",
            expected="letters, digits and underscores, a letter first, at most 60",
            found=text[:80],
            where=where,
        )
    return text


def applies(kind: type[Table], key: str, content: Mapping[str, Any]) -> bool:
    """Whether a table may have a key, with what its other keys say."""
    other, values = kind.only.get(key, ("", ()))
    return not other or content.get(other, "") in values


@lru_cache
def keys(kind: type[Document]) -> dict[str, Any]:
    """Return the keys of a table, with their types."""
    hints = get_type_hints(kind)
    pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return {key: hints[field] for key, field in pairs if field not in getattr(kind, "derived", ())}


def document_in(hint: Any) -> type[Document] | None:
    """Return the document that a key holds, or that a list or a table of names in it holds."""
    if isinstance(hint, type) and issubclass(hint, Document):
        return hint
    return next((found for part in get_args(hint) if (found := document_in(part))), None)


def _keys_at(kind: type[Document], path: str) -> Mapping[str, Any]:
    """Return the keys of the table at a path of the parser's, as `.criteria[0]`."""
    for key in re.findall(r"\.(\w+)", path):
        kind = document_in(keys(kind).get(key)) or kind
    return keys(kind)


def _check_keys(kind: type[Table], content: Mapping[str, Any]) -> None:
    """Check that no key is there that is a derived field, or that another key excludes, and none missing."""
    for key in content:
        if key not in keys(kind) or not applies(kind, key, content):
            raise ValueError(f"Object contains unknown field `{key}`")
    for key in kind.only:
        if key not in content and key not in kind.optional and applies(kind, key, content):
            raise ValueError(f"Object missing required field `{key}`")


def _decoded(kind: type, value: object) -> Any:
    return exact_number(value) if kind is Fraction else kind.decoded(value)  # type: ignore[attr-defined]
