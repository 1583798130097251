"""What a dataset repository on the Hub holds at a commit, as the Hub states it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from toolkit.errors import DamagedError, UsageError
from toolkit.files import file_sha256, unreadable
from toolkit.registers.hub.answers import Digest, file_url, read_bytes_of, read_json, read_pages, too_much
from toolkit.registers.hub.client import AGAIN, NoFileError, telling
from toolkit.registers.hub.revision import checked_commit
from toolkit.registers.manifest import LARGEST_MANIFEST, MANIFEST_NAME, Manifest, parse_manifest
from toolkit.registers.origin import Origin

MOST_FILES = 100_000
"""Files of a repository, for which the Hub itself advises against more."""
LARGEST_CHAIN = 2**20
"""Bytes of a file that is compared in memory: a chain has a line a step."""
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Stated:
    """A file as the Hub states it: the SHA-256 of a large one, git's name for any other, and its bytes."""

    sha256: str | None
    blob: str
    bytes: int

    def is_file(self, path: Path, sha256: str) -> bool:
        """Whether it is a file that lies here."""
        return self.sha256 == sha256 if self.sha256 else self.blob == git_name(path)

    def names(self, sha256: str, blob: str) -> bool:
        """Whether it is content with these names."""
        return self.sha256 == sha256 if self.sha256 else self.blob == blob


@dataclass(frozen=True)
class Remote:
    """A repository at the head of its branch `main`.

    Args:
        head: SHA of the commit.
        files: its visible files by path.
        manifest: what it is a register of; None where it holds nothing visible.
        is_private: whether the Hub says that not everybody sees it.
    """

    head: str
    files: Mapping[str, Stated]
    manifest: Manifest | None
    is_private: bool


def read_remote(repository: str) -> Remote | None:
    """Return what a repository holds; None where there is no such repository."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    with telling(repository, "reading the repository"):
        try:
            info = read_json(f"datasets/{repository}")
        except GatedRepoError:
            raise
        except RepositoryNotFoundError:
            return None
        head, is_private = checked_commit(info["sha"], repository), info.get("private") is True
    files = stated_files(repository, head)
    if files and MANIFEST_NAME not in files:
        raise UsageError(
            f"{repository} holds something that is no register",
            expected=f"an empty repository, or one with {MANIFEST_NAME}",
            found=", ".join(sorted(files)[:5]),
            remedy="give the study a repository of its own",
        )
    manifest = None
    if files:
        check_size(files[MANIFEST_NAME], MANIFEST_NAME, LARGEST_MANIFEST, repository)
        raw = content_at(repository, head, MANIFEST_NAME, files[MANIFEST_NAME].bytes)
        manifest = parse_manifest(raw, f"{repository}@{head}/{MANIFEST_NAME}")
    return Remote(head, files, manifest, is_private=is_private)


def tagged_commit(repository: str, tag: str) -> str | None:
    """Return the commit that a tag means; None where there is no such tag."""
    with telling(repository, "asking for the tags"):
        refs = read_json(f"datasets/{repository}/refs")
        branches, tags = ({ref["name"] for ref in refs[kind]} for kind in ("branches", "tags"))
    if tag in branches:
        raise UsageError(
            f"{tag!r} is a branch of {repository}: a tag of this name would not be told from it",
            remedy="give the version another name, such as v1.0.0",
        )
    if tag not in tags:
        return None
    with telling(repository, "asking for the tag"):
        # An annotated tag is an object of its own; the commit behind it is what counts.
        commit = read_json(f"datasets/{repository}/revision/{quote(tag, safe='')}")["sha"]
    return checked_commit(commit, f"{repository}@{tag}")


def stated_files(repository: str, commit: str, most: int = MOST_FILES) -> dict[str, Stated]:
    """Return the visible files of a commit as the Hub states them, by path."""
    with telling(f"{repository}@{commit}", "listing the files"):
        entries = read_pages(f"datasets/{repository}/tree/{commit}?recursive=true", most)
        return {
            path: stated
            for path, stated in _files(entries)
            if not any(part.startswith(".") for part in path.split("/"))
        }


def stated_file(origin: Origin, name: str) -> Stated:
    """Return a file of a commit as the Hub states it."""
    with telling(origin.pinned, f"asking for {name}"):
        asked = f"datasets/{origin.repository}/paths-info/{origin.commit}"
        for path, stated in _files(read_json(asked, document={"paths": [name]})):
            if path == name:
                return stated
    raise NoFileError(f"{name} is not on the Hub", where=origin.pinned)


def _files(entries: Iterable[Any]) -> Iterator[tuple[str, Stated]]:
    """Yield the files of a listing, folders left out."""
    for entry in entries:
        if entry["type"] != "file":
            continue
        large = entry.get("lfs") or {}
        path, sha256, blob, size = entry["path"], large.get("oid"), entry["oid"], entry["size"]
        hashes = [blob] if sha256 is None else [blob, sha256]
        if not all(isinstance(text, str) for text in (path, *hashes)) or type(size) is not int or size < 0:
            raise TypeError(f"the Hub states of a file {entry}"[:300])
        if not all(_HASH.fullmatch(text) for text in hashes):
            raise ValueError(f"the Hub states a hash that is none: {hashes}"[:300])
        yield path, Stated(sha256, blob, size)


def check_size(stated: Stated, name: str, most: int, where: str) -> None:
    """Check, before a file is fetched, that it is one that would be read."""
    if stated.bytes > most:
        raise too_much(
            f"{name} on the Hub is too long", f"{most} bytes at most", f"{stated.bytes} bytes", where
        )


def check_listed(manifest: Manifest, listing: Mapping[str, Stated], where: str) -> None:
    """Check that a commit has the files of a manifest, as the Hub states them, and no other."""
    for name, entry in manifest.files.items():
        if name not in listing:
            raise NoFileError(
                f"the download of {name} failed: the Hub does not have a file", where=where, remedy=AGAIN
            )
        stated = listing[name]
        if stated.bytes != entry.bytes or stated.sha256 not in {None, entry.sha256}:
            raise DamagedError(
                f"{name} is not the file that the manifest names",
                expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
                found=(f"SHA-256 {stated.sha256}, " if stated.sha256 else "") + f"{stated.bytes} bytes",
                where="the Hub",
            )
    for name in sorted(set(listing) - set(manifest.files) - {MANIFEST_NAME}):
        raise DamagedError(
            f"{name} is not in the manifest",
            expected="only files that the manifest names",
            found=f"{listing[name].bytes} bytes that were not fetched",
            where="the Hub",
        )


def check_stated(stated: Stated, path: Path, origin: Origin) -> None:
    """Check that a file here is the one that the Hub states."""
    sha256, blob = file_sha256(path), git_name(path)
    if not stated.names(sha256, blob):
        raise unlike_stated(stated, path.name, sha256, blob, origin)


def unlike_stated(stated: Stated, name: str, sha256: str, blob: str, origin: Origin) -> DamagedError:
    """Return the error for a file that is not the one that the Hub states."""
    return DamagedError(
        f"{name} is not the file of the commit",
        expected=f"SHA-256 {stated.sha256}" if stated.sha256 else f"git blob {stated.blob}",
        found=f"SHA-256 {sha256}" if stated.sha256 else f"git blob {blob}",
        where=origin.pinned,
    )


def content_at(repository: str, commit: str, name: str, most: int = LARGEST_CHAIN) -> bytes:
    """Return a file of a commit, read now."""
    pinned = f"{repository}@{commit}"
    with telling(pinned, f"reading {name}"):
        return read_bytes_of(file_url(pinned, name), most)


def git_name(path: Path) -> str:
    """Return the name that git gives to a file's content, read in blocks."""
    try:
        digest = Digest(path.stat().st_size)
        with path.open("rb") as opened:
            while part := opened.read(2**20):
                digest.update(part)
    except OSError as error:
        raise unreadable(path, error) from None
    return digest.blob
