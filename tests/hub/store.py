"""What the fixture Hub remembers: dataset repositories as a history of commits, and content by its hash."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

ATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"
MAIN = "main"


class AbsentError(Exception):
    """Something that was asked for is not there; `code` is what the Hub says in X-Error-Code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class RefusedError(Exception):
    """Something that the Hub does not do, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers: dict[str, str] = {}


@dataclass(frozen=True)
class Commit:
    """A state of a repository: path → SHA-256 of the content."""

    sha: str
    parent: str | None
    title: str
    description: str
    files: Mapping[str, str]


@dataclass
class Repository:
    """One dataset repository."""

    name: str
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def commit_at(self, revision: str) -> Commit:
        """Return the commit of a branch, a tag or a SHA."""
        tagged = self.tags.get(revision, (revision, None))[0]
        sha = self.branches.get(revision, tagged)
        if sha not in self.commits:
            raise AbsentError("RevisionNotFound")
        return self.commits[sha]

    @property
    def head(self) -> Commit:
        """The newest commit of main."""
        return self.commits[self.branches[MAIN]]


class Store:
    """Every repository of a Hub, and every content that was sent to it."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.contents: dict[str, bytes] = {}
        self.sizes: dict[str, int] = {}
        self.xet_hashes: dict[str, str] = {}

    def repository(self, name: str) -> Repository:
        """Return a repository by `owner/name`."""
        if name not in self.repositories:
            raise AbsentError("RepoNotFound")
        return self.repositories[name]

    def create(self, name: str, *, private: bool = False) -> Repository:
        """Make a repository, with the one file that the Hub puts into a new one."""
        if name in self.repositories:
            raise RefusedError(409, "You already created this dataset repo")
        self.repositories[name] = Repository(name, private)
        self.commit(name, {".gitattributes": ATTRIBUTES}, title="initial commit")
        return self.repositories[name]

    def keep(self, content: bytes) -> str:
        """Keep content and return its SHA-256."""
        sha256 = hashlib.sha256(content).hexdigest()
        self.contents[sha256], self.sizes[sha256] = content, len(content)
        return sha256

    def keep_elsewhere(self, sha256: str, size: int, xet_hash: str) -> None:
        """Know content that lies in a Xet store, as the Hub learns from that store."""
        self.sizes[sha256], self.xet_hashes[sha256] = size, xet_hash

    def commit(
        self,
        name: str,
        added: Mapping[str, bytes | str],
        deleted: tuple[str, ...] = (),
        *,
        title: str = "a commit",
        description: str = "",
        branch: str = MAIN,
        parent: str | None = None,
    ) -> Commit:
        """Add a commit to a branch."""
        repository = self.repository(name)
        head = repository.branches.get(branch)
        if parent is not None and parent != head:
            raise RefusedError(412, "A commit has happened since. Please refresh and try again.")
        files = dict(repository.commits[head].files) if head else {}
        for path in deleted:
            gone = [f for f in files if f == path or (path.endswith("/") and f.startswith(path))]
            if not gone:
                raise AbsentError("EntryNotFound")
            for file in gone:
                del files[file]
        files |= {p: c if isinstance(c, str) else self.keep(c) for p, c in added.items()}
        # As in git, what is committed, after what, and how it is called make a commit's name.
        text = json.dumps([len(repository.commits), head, title, description, sorted(files.items())])
        commit = Commit(hashlib.sha1(text.encode()).hexdigest(), head, title, description, files)  # noqa: S324
        repository.commits[commit.sha] = commit
        repository.branches[branch] = commit.sha
        return commit

    def tag(self, name: str, tag: str, revision: str, message: str | None = None) -> None:
        """Give a commit a tag; one that is there is not moved."""
        repository = self.repository(name)
        if tag in repository.tags:
            raise RefusedError(409, f"Tag reference exists already: {tag}")
        repository.tags[tag] = (repository.commit_at(revision).sha, message)

    def move_tag(self, name: str, tag: str, revision: str) -> None:
        """Point a tag elsewhere, as somebody with a git client can."""
        repository = self.repository(name)
        repository.tags[tag] = (repository.commit_at(revision).sha, repository.tags[tag][1])

    def untag(self, name: str, tag: str) -> None:
        """Remove a tag."""
        if self.repository(name).tags.pop(tag, None) is None:
            raise AbsentError("RevisionNotFound")

    def entry(self, path: str, sha256: str) -> dict[str, object]:
        """Return a file as the Hub lists it; what git keeps of a large file is a pointer."""
        size = self.sizes[sha256]
        if not is_large(path, size):
            return {"type": "file", "path": path, "size": size, "oid": blob_sha1(self.contents[sha256])}
        pointer = pointer_of(sha256, size)
        entry = {
            "type": "file",
            "path": path,
            "size": size,
            "oid": blob_sha1(pointer),
            "lfs": {"oid": sha256, "size": size, "pointerSize": len(pointer)},
        }
        return {**entry, "xetHash": self.xet_hashes[sha256]} if sha256 in self.xet_hashes else entry


def is_large(path: str, size: int) -> bool:
    """Whether the Hub keeps a file by LFS: Parquet always, anything else from ten megabytes on."""
    return path.endswith(".parquet") or size > 10_000_000


def pointer_of(sha256: str, size: int) -> bytes:
    """Return the text that git keeps in a large file's place."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def blob_sha1(content: bytes) -> str:
    """Return the name that git gives to content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324 - git's own
