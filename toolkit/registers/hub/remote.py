"""What a dataset repository on the Hub holds at a commit, as the Hub states it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, UsageError
from toolkit.files import read_bytes
from toolkit.registers.hub.client import client, repository_cache
from toolkit.registers.hub.failures import telling
from toolkit.registers.manifest import MANIFEST_NAME, Manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Stated:
    """A file as the Hub states it: the SHA-256 of a large one, git's name for any other."""

    sha256: str | None
    blob: str

    def is_file(self, path: Path, sha256: str) -> bool:
        """Whether it is a file that lies here.

        Args:
            path: the file.
            sha256: its SHA-256.
        """
        return self.sha256 == sha256 if self.sha256 else self.blob == _blob(read_bytes(path))


@dataclass(frozen=True)
class Remote:
    """A repository at the head of its branch `main`.

    Args:
        head: SHA of the commit.
        files: its visible files by path.
        tags: commit by name of the tag.
        manifest: what it is a register of; None where it holds nothing visible.
    """

    head: str
    files: Mapping[str, Stated]
    tags: Mapping[str, str]
    manifest: Manifest | None


def read_remote(repository: str) -> Remote | None:
    """Return what a repository holds; None where there is no such repository.

    Raises:
        UsageError: it holds something else than a register.
        IncompleteError: the Hub cannot be asked, or does not permit it.
        DamagedError: its manifest is none.
    """
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    with telling(repository, "reading the repository"):
        try:
            head = client().dataset_info(repository, timeout=30).sha
        except GatedRepoError:
            raise
        except RepositoryNotFoundError:
            return None
        tags = client().list_repo_refs(repository, repo_type="dataset").tags
    if head is None:
        raise IncompleteError("the Hub does not say which commit is the repository's head", where=repository)
    files = stated_files(repository, head)
    if files and MANIFEST_NAME not in files:
        raise UsageError(
            f"{repository} holds something that is no register",
            expected=f"an empty repository, or one with {MANIFEST_NAME}",
            found=", ".join(sorted(files)[:5]),
            remedy="give the study a repository of its own",
        )
    manifest = _manifest(repository, head) if files else None
    return Remote(head, files, {tag.name: tag.target_commit for tag in tags}, manifest)


def stated_files(repository: str, commit: str) -> dict[str, Stated]:
    """Return the visible files of a commit as the Hub states them, by path.

    Raises:
        IncompleteError: the Hub cannot be asked.
    """
    from huggingface_hub.hf_api import RepoFile

    with telling(f"{repository}@{commit}", "listing the files"):
        entries = client().list_repo_tree(repository, recursive=True, revision=commit, repo_type="dataset")
        files = [entry for entry in entries if isinstance(entry, RepoFile)]
    return {
        file.path: Stated(file.lfs.sha256 if file.lfs else None, file.blob_id)
        for file in files
        if not any(part.startswith(".") for part in file.path.split("/"))
    }


def _manifest(repository: str, commit: str) -> Manifest:
    cache = repository_cache(repository)
    with telling(f"{repository}@{commit}", "reading the manifest"):
        client().hf_hub_download(
            repository,
            MANIFEST_NAME,
            repo_type="dataset",
            revision=commit,
            cache_dir=cache.parent,
            force_download=True,
        )
    return read_manifest(cache / "snapshots" / commit)


def _blob(content: bytes) -> str:
    """Return the name that git gives to content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
