"""Whom a reader trusts to tell the time: authorities, their operators, and their roots by fingerprint.

A registration names its authorities in a trust file of its own. That alone proves nothing, since anybody can
make two authorities in a minute; so the roots of a public registration must also be ones that the reader
knows: those in `authorities.toml` beside this file, and those in a trust file that the reader gives.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from toolkit.errors import DamagedError
from toolkit.files import read_text

TRUST = "trust.toml"
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"https?://\S+|demonstration", re.ASCII)
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True)
class Trusted:
    """An authority."""

    name: str  # as people know it
    slug: str  # as file names have it
    operator: str  # who runs it; two authorities of one operator count as one
    address: str  # where it answers
    roots: tuple[str, ...]  # SHA-256 fingerprints of its pinned certificates, hexadecimal
    policies: tuple[str, ...] = ()  # object identifiers of the policies accepted; any where none is named
    certificates: str = ""  # where its root certificate can be had


def known_authorities(*more: Path) -> tuple[Trusted, ...]:
    """Return the authorities that this version ships, and those of a reader's own trust files."""
    shipped = (files("toolkit.prereg") / "authorities.toml").read_text(encoding="utf-8")
    authorities = list(parse_trust(shipped, "authorities.toml"))
    for path in more:
        authorities += parse_trust(read_text(path), path)
    return tuple(authorities)


def known_restatements(more: Iterable[str] = ()) -> frozenset[str]:
    """Return the restatements that somebody stands for, by the last link of their chain."""
    shipped = tomllib.loads((files("toolkit.prereg") / "restatements.toml").read_text(encoding="utf-8"))
    return frozenset((*(entry["link"] for entry in shipped["restatements"]), *more))


def parse_trust(text: str, where: Path | str) -> tuple[Trusted, ...]:
    """Read a trust file."""
    try:
        authorities = tuple(_trusted(entry) for entry in tomllib.loads(text)["authorities"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(
            "a trust file does not say what it has to",
            expected="[[authorities]] with name, operator, address and roots (SHA-256 fingerprints)",
            found=f"{type(error).__name__}: {error}",
            where=where,
        ) from None
    slugs = [authority.slug for authority in authorities]
    if len(set(slugs)) != len(slugs):
        raise DamagedError("a trust file names an authority twice", found=", ".join(slugs), where=where)
    return authorities


def write_trust(authorities: Iterable[Trusted], comment: str) -> str:
    """Return a trust file."""
    parts = [f"# {comment}\n"]
    for authority in authorities:
        parts.append(
            "\n[[authorities]]\n"
            f'name = "{authority.name}"\n'
            f'operator = "{authority.operator}"\n'
            f'address = "{authority.address}"\n'
            f"roots = {_listed(authority.roots)}\n"
        )
        if authority.policies:
            parts.append(f"policies = {_listed(authority.policies)}\n")
        if authority.certificates:
            parts.append(f'certificates = "{authority.certificates}"\n')
    return "".join(parts)


def operator_of(root_sha256: str, known: Iterable[Trusted]) -> str | None:
    """Return the operator of a pinned root, or None where no known authority has it."""
    return next((authority.operator for authority in known if root_sha256 in authority.roots), None)


def slug_of(name: str) -> str:
    """Return a name as file names have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")


def _trusted(entry: dict[str, Any]) -> Trusted:
    authority = Trusted(
        name=_text(entry["name"]),
        slug=slug_of(_text(entry["name"])),
        operator=_text(entry["operator"]),
        address=_text(entry["address"]),
        roots=tuple(_text(root).lower() for root in entry["roots"]),
        policies=tuple(_text(policy) for policy in entry.get("policies", [])),
        certificates=entry.get("certificates", ""),
    )
    if not authority.roots or not all(_FINGERPRINT.fullmatch(root) for root in authority.roots):
        raise ValueError(f"{authority.name}: roots are SHA-256 fingerprints, 64 hexadecimal digits each")
    if not _ADDRESS.fullmatch(authority.address):
        raise ValueError(f"{authority.name}: {authority.address!r} is no http(s) address")
    if not _SLUG.fullmatch(authority.slug):
        raise ValueError(f"{authority.name!r} has no letter or digit")
    return authority


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value or '"' in value or "\\" in value:
        raise TypeError(f"expected plain text, found {value!r}")
    return value


def _listed(values: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"
