"""Studies and logs to and from the Hub, which is not trusted: pulled by commit, hashed, moved into place."""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError, VerificationError
from toolkit.files import LARGEST_ROWS, file_sha256, in_turn, read_bytes, read_text, replacing
from toolkit.line_ends import refuse_converted
from toolkit.registers import manifest as manifests
from toolkit.registers.cards import CARD
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.client import NoFileError, Reference, Stated, list_files, too_much
from toolkit.registers.manifest import LARGEST_MANIFEST, MANIFEST_NAME, Manifest, Origin, read_manifest
from toolkit.registers.study import Study, open_study, verify_study
from toolkit.structs import Document, about, replace

LARGEST_LOG = LARGEST_ROWS
"""Bytes of a log's files."""
LARGEST_CHAIN = 2**20
NAMED_FILES = 5
_TAG = re.compile(r"[A-Za-z0-9](?!.*\.\.)[\w.+-]{0,99}(?<!\.)(?<!\.lock)", re.ASCII)
_REGISTRATION = "prereg/"
"""Where a study carries its registration."""
_CHAIN = "/LATER.chain"
"""What was registered later, one line a step: it grows."""

Say = Callable[[str], None]
Listing = Mapping[str, Stated]


# Downloading: into a scratch folder, which is held to be one.


def check_held(folder: Path, name: str) -> Path:
    """Return where a file of a folder lies: in the folder itself, whatever links and names there are."""
    plain, path = PurePosixPath(name), folder / name
    is_plain = plain.as_posix() == name and not plain.is_absolute()
    # A name that ends with a dot could continue as `..` within the client's own names.
    is_plain = is_plain and not any(part.endswith(".") for part in plain.parts)
    if not is_plain or "\\" in name or os.path.realpath(path) != os.path.realpath(folder) + f"{os.sep}{name}":
        raise DamagedError(
            f"{name} leads out of its folder",
            expected=f"a file in {folder}",
            found=os.path.realpath(path) if is_plain else repr(name),
            where=folder,
            remedy=hub.NOT_TRUSTED,
        )
    if not path.is_file():
        raise IncompleteError(f"{name} is missing", where=folder, remedy=hub.RESUME)
    return path


def _check_stated(stated: Stated, folder: Path, name: str, pinned: str) -> None:
    """Check that a file of a folder is the one that the Hub states."""
    if not stated.is_file(check_held(folder, name)):
        raise DamagedError(
            f"{name} is not the file of the commit",
            expected=f"SHA-256 {stated.sha256}" if stated.sha256 else f"git blob {stated.blob}",
            found=f"SHA-256 {file_sha256(folder / name)}",
            where=pinned,
            remedy=hub.NOT_TRUSTED,
        )


def _download(origin: Origin, names: Collection[str], listing: Listing, folder: Path) -> None:
    """Download files of a commit into a folder, no more bytes of them than the Hub states."""
    from huggingface_hub import snapshot_download

    if not names:
        return
    size = sum(listing[name].bytes for name in names)
    _check_room(size)
    which = next(iter(names)) if len(names) == 1 else f"{len(names)} files"

    def download() -> object:
        return snapshot_download(
            origin.repository,
            repo_type="dataset",
            revision=origin.commit,
            allow_patterns=[glob.escape(name) for name in names],
            local_dir=folder,
            cache_dir=folder / ".cache" / "hub",
            endpoint=hub.endpoint(),
            library_name=hub.LIBRARY,
            tqdm_class=_bounded_bar(size, origin.pinned),
        )

    with hub.bars():
        hub.ask(origin.pinned, f"the download of {which}", download, size)
    for name in names:
        check_held(folder, name)


def _bounded_bar(most: int, pinned: str) -> type[Any]:
    """Return a progress bar that stops a download which brings more bytes than there are."""
    from huggingface_hub import utils

    base: Any = utils.tqdm

    class Bounded(base):  # type: ignore[misc]
        def __init__(self, *args: object, **options: Any) -> None:
            self._counts, self._count = options.get("unit") == "B", 0
            super().__init__(*args, **options)

        def update(self, n: float | None = 1) -> object:
            self._count += int(n or 0)
            if self._counts and self._count > most:
                raise too_much("a download has no end", f"{most} bytes at most", pinned)
            return super().update(n)

    return Bounded


def _check_room(wanted: int) -> None:
    folder = hub.cache_folder()
    there = next((path for path in (folder, *folder.parents) if path.is_dir()), None)
    free = shutil.disk_usage(there).free if there else wanted
    if wanted > free:
        raise IncompleteError(
            "the disk has no room for the study",
            expected=f"{wanted} bytes",
            found=f"{free} bytes free",
            where=folder,
            remedy="make room, or set HF_HOME to another disk",
        )


def _remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _keep_whole(scratch: Path, listing: Listing) -> set[str]:
    """Remove everything from a scratch folder but whole files of a commit; return their names."""
    if scratch.is_symlink() or not scratch.is_dir():
        _remove(scratch)
    kept = set()
    for path in sorted(scratch.rglob("*"), reverse=True):
        name = path.relative_to(scratch).as_posix()
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):  # it holds something that is kept
                path.rmdir()
        elif name in listing and not path.is_symlink() and listing[name].is_file(path):
            kept.add(name)
        else:
            path.unlink()
    return kept


@contextmanager
def _scratch(origin: Origin) -> Iterator[Path]:
    """Give the scratch folder of a commit to one command at a time; it stays where something failed."""
    folder = hub.repository_folder(origin.repository)
    scratch = folder / f"{origin.commit}.part"
    with in_turn(folder / "toolkit-pull.lock"):
        try:
            yield scratch
            _remove(scratch)
        except OSError as error:
            raise IncompleteError(
                "the cache cannot be written",
                found=error.strerror or error,
                where=error.filename or folder,
                remedy="make the folder writable, or set HF_HOME to another disk",
            ) from None


def read_file(origin: Origin, name: str, listing: Listing, most: int) -> bytes:
    """Return a file of a commit, downloaded now and compared with what the Hub states of it."""
    if listing[name].bytes > most:
        what = f"{listing[name].bytes} bytes"
        raise too_much(f"{name} on the Hub is too long", f"{most} bytes at most", origin.pinned, what)
    with tempfile.TemporaryDirectory() as folder:
        _download(origin, [name], listing, Path(folder))
        _check_stated(listing[name], Path(folder), name, origin.pinned)
        return read_bytes(Path(folder) / name, most)


# Pulling a study.


def pull(
    reference: Reference, *, offline: bool = False, accept_moved: bool = False, say: Say = lambda _: None
) -> Study:
    """Return a study of the Hub, checked whole; what the cache has whole of it is not downloaded again."""
    origin, is_online = hub.resolve(reference, offline=offline, accept_moved=accept_moved, say=say)
    place = hub.study_folder(origin.repository, origin.commit)
    try:
        listing = _listing(origin, say) if is_online else None
        try:
            return _checked(place, origin, listing)
        except ToolkitError as error:
            if listing is None:
                remedy = "pull it once with a connection: it is downloaded anew"
                if not hub.is_cached(origin.repository, origin.commit):
                    problem = f"{MANIFEST_NAME} of {origin.pinned} is not in the cache"
                    raise IncompleteError(problem, where=place, remedy=remedy) from None
                raise error.restated(remedy=remedy) from None
        return _fetch(origin, listing, place, say)
    except hub.RefusedError as error:
        raise hub.offering_cache(error, origin.repository, origin.commit) from None


def _listing(origin: Origin, say: Say) -> Listing | None:
    """Return what the Hub states of a commit's files; None where it does not answer and need not."""
    try:
        return list_register(origin)
    except hub.UnreachableError as error:
        if not hub.is_cached(origin.repository, origin.commit):
            raise
        say(f"{error.problem}: {origin.pinned} is taken from the cache, and not compared with what it states")
        return None


def list_register(origin: Origin) -> Listing:
    """Return what the Hub states of a commit's files, checked to have a manifest that can be read."""
    listing = list_files(origin.repository, origin.commit)
    if MANIFEST_NAME not in listing:
        raise IncompleteError(
            f"{origin.repository} is no register of this toolkit",
            expected=f"a dataset repository with {MANIFEST_NAME}",
            where=origin.pinned,
            remedy="use `load_dataset` for it, or `toolkit registers import` to make a study of it",
        )
    size = listing[MANIFEST_NAME].bytes
    if size > LARGEST_MANIFEST:
        what = f"{MANIFEST_NAME} on the Hub is too long"
        raise too_much(what, f"{LARGEST_MANIFEST} bytes at most", origin.pinned, f"{size} bytes")
    return listing


def _check_listed(manifest: Manifest, listing: Listing, origin: Origin) -> None:
    """Check, before they are downloaded, that a commit has the files of its manifest and no other."""
    where = f"{origin.pinned}, as the Hub states it"
    for name, entry in manifest.files.items():
        if name not in listing:
            problem = f"the download of {name} failed: the Hub does not have a file"
            raise NoFileError(problem, where=origin.pinned, remedy=hub.AGAIN)
        stated = listing[name]
        if stated.bytes != entry.bytes or stated.sha256 not in {None, entry.sha256}:
            # A CRLF for every LF can do no more; text is never stated with a SHA-256.
            if stated.sha256 is None and entry.bytes < stated.bytes <= min(2 * entry.bytes, LARGEST_MANIFEST):
                content = read_file(origin, name, listing, LARGEST_MANIFEST)
                refuse_converted(name, content, entry.sha256, DamagedError, origin.pinned)
            raise DamagedError(
                f"{name} is not the file that the manifest names",
                expected=f"SHA-256 {entry.sha256}, {entry.bytes} bytes",
                found=(f"SHA-256 {stated.sha256}, " if stated.sha256 else "") + f"{stated.bytes} bytes",
                where=where,
                remedy=hub.NOT_TRUSTED,
            )
    for name in sorted(set(listing) - set(manifest.files) - {MANIFEST_NAME}):
        raise DamagedError(
            f"{name} is not in the manifest",
            expected="only files that the manifest names",
            found=f"{listing[name].bytes} bytes that were not downloaded",
            where=where,
            remedy=hub.NOT_TRUSTED,
        )


def _checked(folder: Path, origin: Origin, listing: Listing | None) -> Study:
    """Return the study in a folder, all of it checked; its manifest has to be the one that the Hub states."""
    check_held(folder, MANIFEST_NAME)
    if listing is not None:
        _check_stated(listing[MANIFEST_NAME], folder, MANIFEST_NAME, origin.pinned)
    study = open_study(folder, origin)
    for name in study.manifest.files:
        check_held(folder, name)
        study.prove(name)
    manifests.check_nothing_else(folder, study.manifest)
    return study


def _fetch(origin: Origin, listing: Listing, place: Path, say: Say) -> Study:
    """Download a study, and put it in its place."""
    with _scratch(origin) as scratch:
        if place.is_symlink() or place.exists():
            try:
                return _checked(place, origin, listing)  # somebody else was quicker
            except ToolkitError as error:
                say(f"{error.problem}, in the cache: it is downloaded anew")
            _remove(scratch)
            place.rename(scratch)
        whole = _keep_whole(scratch, listing)
        _download(origin, {MANIFEST_NAME} - whole, listing, scratch)
        _check_stated(listing[MANIFEST_NAME], scratch, MANIFEST_NAME, origin.pinned)
        manifest = read_manifest(scratch)
        _check_listed(manifest, listing, origin)
        _download(origin, [name for name in manifest.files if name not in whole], listing, scratch)
        _remove(scratch / ".cache")
        try:
            _checked(scratch, origin, listing)
        except DamagedError as error:
            raise error.restated(where=f"{origin.pinned}, {error.where}", remedy=hub.NOT_TRUSTED) from None
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch.rename(place)
    return _checked(place, origin, listing)


# A copy of a pulled study in a folder of one's own.


def check_into(folder: Path, study: Study) -> None:
    """Check that a folder may be written: missing, empty, or the unchanged copy of a commit in the cache."""
    try:
        lost = _lost(folder, study)
    except OSError as error:
        lost = str(error.strerror or error)
    if lost is not None:
        raise IncompleteError(
            f"{folder} holds something that would be lost",
            expected="no folder, an empty one, or one that was pulled from this repository and not changed",
            found=lost,
            where=folder,
            remedy="give another folder, or move this one away",
        )


def copy_into(folder: Path, study: Study, say: Say = lambda _: None) -> Study:
    """Copy a study into a folder and check the copy; `say` is given each file's name."""
    folder = folder.resolve()
    with replacing(folder) as new:
        for name in (MANIFEST_NAME, *study.manifest.files):
            say(name)
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(study.folder / name, new / name)
        copied = open_study(new)
        for name in copied.manifest.files:
            copied.prove(name)
    return open_study(folder, study.origin)


def _lost(folder: Path, study: Study) -> str | None:
    """Return the first thing in a folder that is not a pulled study's; None where there is none."""
    if not folder.is_dir():
        return "a file" if folder.exists() or folder.is_symlink() else None
    there = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    if MANIFEST_NAME not in there:
        return next(iter(there), None)
    known = {path.read_bytes() for path in study.folder.parent.glob(f"*/{MANIFEST_NAME}")}
    if there[MANIFEST_NAME].read_bytes() not in known:
        return f"{MANIFEST_NAME}, which is of no commit of the repository that was pulled"
    manifest = read_manifest(folder)
    for name, path in there.items():
        is_hidden = any(part.startswith(".") for part in name.split("/"))
        is_folder = path.is_dir() and not path.is_symlink()
        if name == MANIFEST_NAME or (is_folder and not is_hidden):
            continue
        try:
            manifests.check_file(folder, name, manifest.files[name])
        except (ToolkitError, KeyError):
            return name
    return None


# A log: files of a repository that is no register.


def fetch_log(text: str, say: Say = lambda _: None) -> list[Path]:
    """Return where the files of a log on the Hub lie here; what the cache has is not downloaded again."""
    reference, path = hub.parse_log(text)
    origin, is_online = hub.resolve(reference, offline=False, accept_moved=False, say=say)
    folder = hub.repository_folder(origin.repository) / "snapshots" / origin.commit
    if is_online:
        _fetch_log(origin, path, folder)
    is_one = not path or (folder / path).exists()
    found = [folder / path] if is_one else sorted(folder.glob(path))
    if not all(one.exists() for one in found) or not found:
        raise IncompleteError(
            "the cache has no such file of the repository",
            where=f"{origin.pinned}/{path}",
            remedy="give the same command once with a connection",
        )
    return found


def _fetch_log(origin: Origin, path: str, folder: Path) -> None:
    """Download the files that a path names, and put each that is the commit's in its place."""
    stated = {
        name: one
        for name, one in list_files(origin.repository, origin.commit).items()
        if not path or name == path or name.startswith(f"{path}/") or fnmatchcase(name, path)
    }
    if not stated:
        raise IncompleteError("the repository has no such file", found=path or "nothing", where=origin.pinned)
    size = sum(one.bytes for one in stated.values())
    if size > LARGEST_LOG:
        raise DamagedError(
            "the files are more than a log has",
            expected=f"{LARGEST_LOG} bytes at most",
            found=f"{size} bytes",
            where=origin.pinned,
            remedy=f"name the files of the log: {hub.SCHEME}{origin.pinned}/PATH",
        )
    missing = {name: one for name, one in stated.items() if not _is_held(folder, name, one)}
    if not missing:
        return
    with _scratch(origin) as scratch:
        _download(origin, missing.keys() - _keep_whole(scratch, missing), missing, scratch)
        for name, one in missing.items():
            _check_stated(one, scratch, name, origin.pinned)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).replace(folder / name)


def _is_held(folder: Path, name: str, stated: Stated) -> bool:
    try:
        return stated.is_file(check_held(folder, name))
    except IncompleteError:
        return False


# Pushing a study.


@dataclass(frozen=True)
class Remote:
    """A repository at the head of its branch `main`; `manifest` is None where it has no visible file."""

    head: str
    files: Listing
    manifest: Manifest | None
    is_private: bool


Paths = Annotated[tuple[str, ...], about("Paths.")]


class Push(Document, frozen=True):
    """What was pushed to the Hub, or would be."""

    repository: Annotated[str, about("As owner/name.")]
    outcome: Annotated[Literal["planned", "unchanged", "pushed"], about("`planned`: with --dry-run.")]
    parent: Annotated[str | None, about("The commit that was compared; null where there is no repository.")]
    commit: Annotated[str | None, about("The commit that holds the study; null where nothing was sent.")]
    tag: Annotated[str | None, about("The tag that means this commit.")]
    checked_files: Annotated[int, about("Files that the Hub was seen to state as they are here.")]
    added: Paths
    changed: Paths
    deleted: Paths
    same: Annotated[int, about("Files that were there already.")]

    @property
    def is_empty(self) -> bool:
        """Whether the repository holds exactly this study already."""
        return self.parent is not None and not (self.added or self.changed or self.deleted)


def push(
    study: Study,
    repository: str,
    *,
    private: bool = False,
    parent: str | None = None,
    overwrite: bool = False,
    tag: str | None = None,
    dry_run: bool = False,
    check: Callable[[Study], None] = lambda _: None,
    say: Say = lambda _: None,
) -> Push:
    """Send a verified study as one commit on top of what it was compared with; compare what is there then."""
    is_odd = tag is not None and (not _TAG.fullmatch(tag) or tag in {hub.MAIN, "HEAD"})
    if is_odd or (tag is not None and hub.is_commit(tag.lower())):
        raise UsageError(
            f"{tag!r} cannot be a tag",
            expected="letters, digits, and . _ + -, such as v1.0.0; no SHA, and no name that git keeps",
        )
    if hub.is_offline():
        found, remedy = "HF_HUB_OFFLINE is set", "unset HF_HUB_OFFLINE"
        raise hub.UnreachableError("a push needs the Hub", found=found, remedy=remedy)
    say("verifying the study")
    verify_study(study)
    check(study)
    _check_filled(study)
    remote = _read_remote(repository)
    plan = _plan(study, repository, remote)
    tagged = _tagged_commit(repository, tag) if tag and remote else None
    check_push(plan, study, remote, parent=parent, private=private)
    if not overwrite and remote:
        _check_append_only(plan, study, remote)
    if tag and tagged and (not plan.is_empty or tagged != plan.parent):
        raise _tag_taken(repository, tag, tagged, plan.parent if plan.is_empty else "a new commit")
    if dry_run:
        return replace(plan, commit=plan.parent if plan.is_empty else None, tag=tag)
    commit = plan.parent
    if commit is None or not plan.is_empty:
        say(f"sending {len(plan.added) + len(plan.changed)} files")
        if commit is None:
            with hub.telling(repository, "creating the repository"):
                hub.client().create_repo(repository, repo_type="dataset", private=private)
            commit = hub.checked_commit(hub.info_of(repository).sha, repository)
        commit = _commit(study, plan, commit)
    checked = _check_pushed(study, repository, commit)
    tagged = _tagged_commit(repository, tag) if tag else None
    if tag and not tagged:
        message = f"{study.name}: logical SHA-256 {study.manifest.logical_sha256}"
        with hub.telling(repository, "the tag"):
            hub.client().create_tag(
                repository, tag=tag, tag_message=message, revision=commit, repo_type="dataset"
            )
    elif tag and tagged and tagged != commit:
        raise _tag_taken(repository, tag, tagged, commit)
    outcome = "unchanged" if plan.is_empty else "pushed"
    return replace(plan, outcome=outcome, commit=commit, tag=tag, checked_files=checked)


def check_push(plan: Push, study: Study, remote: Remote | None, *, parent: str | None, private: bool) -> None:
    """Check that the repository is this study's, at the expected commit, and private where it has to be."""
    if remote and remote.manifest and remote.manifest.study != study.name:
        raise UsageError(
            f"{plan.repository} holds another study",
            expected=study.name,
            found=remote.manifest.study,
            remedy="give the study a repository of its own",
        )
    if parent is not None and parent != plan.parent:
        raise VerificationError(
            f"{plan.repository} is not at the commit that this push is based on; nothing was changed",
            expected=parent,
            found=plan.parent or "no such repository",
            remedy="pull what is there now, look at it, and push again on top of it",
        )
    if private and remote and not remote.is_private:
        raise UsageError(
            f"{plan.repository} is there and is public: a push does not make it private",
            remedy="leave out --private; or make it private in its settings on the Hub, and push then",
        )


def _check_append_only(plan: Push, study: Study, remote: Remote) -> None:
    """Check that no rows that others may have cited are changed or removed, nor what was registered."""

    def has_grown(name: str) -> bool:
        """Whether it is the chain of a registration that goes on where the one on the Hub ends."""
        if name in plan.deleted or not (name.startswith(_REGISTRATION) and name.endswith(_CHAIN)):
            return False
        there = read_file(_at(plan.repository, remote.head), name, remote.files, LARGEST_CHAIN)
        return read_bytes(study.folder / name).startswith(there)

    guarded = (
        n for n in (*plan.changed, *plan.deleted) if n.endswith(".parquet") or n.startswith(_REGISTRATION)
    )
    lost = [name for name in guarded if not has_grown(name)]
    if lost:
        more = f" and {len(lost) - NAMED_FILES} more" if len(lost) > NAMED_FILES else ""
        what = "rows" if any(name.endswith(".parquet") for name in lost) else "a registration"
        raise UsageError(
            f"the push would change or remove {what} that {plan.repository} has; registers are append-only",
            found=", ".join(lost[:NAMED_FILES]) + more,
            remedy="add files instead of changing them; or --replace, with a new tag and a word in the card",
        )


def _check_filled(study: Study) -> None:
    """Check that the card was filled in: it is the page that readers land on."""
    card = study.folder / CARD
    lines = read_text(card).splitlines() if card.is_file() else []
    unfilled = [line.strip() for line in lines if "FILL IN" in line]
    if unfilled:
        raise UsageError(
            "the card was not filled in",
            found=unfilled[0],
            where=card,
            remedy=f"fill in cards/{study.name}.md, and import the study again",
        )


def _read_remote(repository: str) -> Remote | None:
    """Return what a repository holds; None where there is no such repository."""
    try:
        info = hub.info_of(repository)
    except hub.NoRepositoryError:
        return None
    head = hub.checked_commit(info.sha, repository)
    files = list_files(repository, head)
    if files and MANIFEST_NAME not in files:
        raise UsageError(
            f"{repository} holds something that is no register",
            expected=f"an empty repository, or one with {MANIFEST_NAME}",
            found=", ".join(sorted(files)[:NAMED_FILES]),
            remedy="give the study a repository of its own",
        )
    manifest = None
    if files:
        raw = read_file(_at(repository, head), MANIFEST_NAME, files, LARGEST_MANIFEST)
        manifest = manifests.parse_manifest(raw, f"{repository}@{head}/{MANIFEST_NAME}")
    return Remote(head, files, manifest, is_private=info.private is True)


def _at(repository: str, commit: str) -> Origin:
    return Origin(repository, commit, commit)


def _tagged_commit(repository: str, tag: str) -> str | None:
    """Return the commit that a tag means; None where there is no such tag."""
    branches, tags = hub.names_of(repository)
    if tag in branches:
        raise UsageError(
            f"{tag!r} is a branch of {repository}: a tag of this name would not be told from it",
            remedy="give the version another name, such as v1.0.0",
        )
    # An annotated tag is an object of its own; the commit behind it is what counts.
    return hub.commit_of(repository, tag) if tag in tags else None


def _files(study: Study) -> dict[str, Path]:
    """Return where each file lies that a repository of the study holds, by path."""
    return {name: study.folder / name for name in (*study.manifest.files, MANIFEST_NAME)}


def _plan(study: Study, repository: str, remote: Remote | None) -> Push:
    """Compare a study with a repository."""
    stated, files = remote.files if remote else {}, _files(study)
    known = study.manifest.files
    same = {
        name
        for name, path in files.items()
        if name in stated and stated[name].is_file(path, known[name].sha256 if name in known else "")
    }
    added, changed, deleted = (
        tuple(sorted(names))
        for names in (files.keys() - stated, (files.keys() & stated.keys()) - same, stated.keys() - files)
    )
    head = remote.head if remote else None
    return Push(repository, "planned", head, None, None, 0, added, changed, deleted, len(same))


def _commit(study: Study, plan: Push, head: str) -> str:
    """Send everything that differs as one commit on top of the head that was compared; return its SHA."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    files = _files(study)
    changes = [CommitOperationAdd(name, files[name]) for name in (*plan.added, *plan.changed)]
    with hub.bars(), hub.telling(plan.repository, "the push"):
        done = hub.client().create_commit(
            plan.repository,
            [*changes, *(CommitOperationDelete(name, is_folder=False) for name in plan.deleted)],
            commit_message=f"Registers of {study.name}",
            commit_description=f"Logical SHA-256 {study.manifest.logical_sha256}",
            repo_type="dataset",
            revision=hub.MAIN,
            parent_commit=head,
        )
    return hub.checked_commit(done.oid, plan.repository)


def _check_pushed(study: Study, repository: str, commit: str) -> int:
    """Check that the Hub states of every file what the manifest does, and states no other; count them."""
    stated = list_files(repository, commit)
    left = _plan(study, repository, Remote(commit, stated, None, is_private=False))
    if not left.is_empty:
        raise VerificationError(
            "what the Hub states of the commit is not what was pushed",
            expected="the files of the manifest, each with its hash",
            found=", ".join(sorted((*left.added, *left.changed, *left.deleted))[:NAMED_FILES]),
            where=f"{repository}@{commit}",
            remedy="do not cite this commit; push again",
        )
    return len(stated)


def _tag_taken(repository: str, tag: str, tagged: str, wanted: str | None) -> VerificationError:
    """Return the error for a tag that is another commit."""
    return VerificationError(
        f"the tag {tag} of {repository} is there already, and is not moved",
        expected=wanted,
        found=tagged,
        remedy="give this version a tag of its own",
    )
