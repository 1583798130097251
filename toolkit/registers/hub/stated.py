"""What a dataset repository on the Hub holds at a commit, as the Hub states it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.files import file_sha256, read_bytes
from toolkit.registers.hub.client import client, repository_cache, snapshot, telling
from toolkit.registers.hub.revision import checked_commit
from toolkit.registers.manifest import MANIFEST_NAME, Manifest, parse_manifest
from toolkit.registers.study import Origin


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
        manifest: what it is a register of; None where it holds nothing visible.
        is_private: whether the Hub says that not everybody sees it.
    """

    head: str
    files: Mapping[str, Stated]
    manifest: Manifest | None
    is_private: bool


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
            info = client().dataset_info(repository, timeout=30)
        except GatedRepoError:
            raise
        except RepositoryNotFoundError:
            return None
    head = checked_commit(info.sha, repository)
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
        raw = content_at(repository, head, MANIFEST_NAME)
        manifest = parse_manifest(raw, f"{repository}@{head}/{MANIFEST_NAME}")
    return Remote(head, files, manifest, is_private=info.private is True)


def tagged_commit(repository: str, tag: str) -> str | None:
    """Return the commit that a tag means; None where there is no such tag.

    Raises:
        UsageError: there is a branch of this name, which would mean either from then on.
        IncompleteError: the Hub cannot be asked.
    """
    with telling(repository, "asking for the tags"):
        api = client()
        refs = api.list_repo_refs(repository, repo_type="dataset")
        branches, tags = {ref.name for ref in refs.branches}, {ref.name for ref in refs.tags}
    if tag in branches:
        raise UsageError(
            f"{tag!r} is a branch of {repository}: a tag of this name would not be told from it",
            remedy="give the version another name, such as v1.0.0",
        )
    if tag not in tags:
        return None
    with telling(repository, "asking for the tag"):
        # An annotated tag is an object of its own; the commit behind it is what counts.
        commit = api.dataset_info(repository, revision=tag, timeout=30).sha
    return checked_commit(commit, f"{repository}@{tag}")


def stated_files(repository: str, commit: str) -> dict[str, Stated]:
    """Return the visible files of a commit as the Hub states them, by path.

    Raises:
        IncompleteError: the Hub cannot be asked.
    """
    from huggingface_hub.hf_api import RepoFile

    with telling(f"{repository}@{commit}", "listing the files"):
        entries = client().list_repo_tree(repository, recursive=True, revision=commit, repo_type="dataset")
        return {
            file.path: Stated(file.lfs.sha256 if file.lfs else None, file.blob_id)
            for file in entries
            if isinstance(file, RepoFile) and not any(part.startswith(".") for part in file.path.split("/"))
        }


def stated_file(origin: Origin, name: str) -> Stated:
    """Return a file of a commit as the Hub states it.

    Raises:
        IncompleteError: the Hub cannot be asked, or has no such file.
    """
    from huggingface_hub.hf_api import RepoFile

    with telling(origin.pinned, f"asking for {name}"):
        entries = client().get_paths_info(
            origin.repository, [name], revision=origin.commit, repo_type="dataset"
        )
        for file in entries:
            if isinstance(file, RepoFile):
                return Stated(file.lfs.sha256 if file.lfs else None, file.blob_id)
    raise IncompleteError(f"{name} is not on the Hub", where=origin.pinned)


def check_stated(stated: Stated, path: Path, origin: Origin) -> None:
    """Check that a file here is the one that the Hub states.

    Raises:
        DamagedError: it is another.
    """
    if not stated.is_file(path, file_sha256(path)):
        raise DamagedError(
            f"{path.name} is not the file of the commit",
            expected=f"SHA-256 {stated.sha256}" if stated.sha256 else f"git blob {stated.blob}",
            found=f"SHA-256 {file_sha256(path)}" if stated.sha256 else f"git blob {_blob(read_bytes(path))}",
            where=origin.pinned,
        )


def content_at(repository: str, commit: str, name: str) -> bytes:
    """Return a file of a commit, downloaded now.

    Raises:
        IncompleteError: it cannot be had.
    """
    with telling(f"{repository}@{commit}", f"reading {name}"):
        client().hf_hub_download(
            repository,
            name,
            repo_type="dataset",
            revision=commit,
            cache_dir=repository_cache(repository).parent,
            force_download=True,
        )
    return read_bytes(snapshot(repository, commit) / name)


def _blob(content: bytes) -> str:
    """Return the name that git gives to content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
