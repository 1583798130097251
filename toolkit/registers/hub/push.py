"""Pushing a study: verified, compared, sent as one commit, and compared with what the Hub then states."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UsageError, VerificationError
from toolkit.files import read_bytes, read_text
from toolkit.registers.cards import CARD
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.pull import read_file
from toolkit.registers.manifest import LARGEST_MANIFEST, MANIFEST_NAME, Manifest, Origin, parse_manifest
from toolkit.registers.study import Study, verify_study

_TAG = re.compile(r"[A-Za-z0-9](?!.*\.\.)[\w.+-]{0,99}(?<!\.)(?<!\.lock)", re.ASCII)
_CHAIN = "/LATER.chain"
"""What was registered later, one line a step: it grows."""
REGISTRATION = "prereg/"
"""Where a study carries its registration."""
LARGEST_CHAIN = 2**20
NAMED_FILES = 5


@dataclass(frozen=True)
class Remote:
    """A repository at the head of its branch `main`; `manifest` is None where it has no visible file."""

    head: str
    files: Mapping[str, hub.Stated]
    manifest: Manifest | None
    is_private: bool


@dataclass(frozen=True)
class Plan:
    """What a push would do to paths; `head` is None where the repository is to be created."""

    repository: str
    head: str | None
    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    same: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the repository holds exactly this study already."""
        return self.head is not None and not (self.added or self.changed or self.deleted)


@dataclass(frozen=True)
class Pushed:
    """What a push did, or would do: `commit` is None where nothing was sent, only planned.

    `files` is how many of the study's files the Hub was seen to state as they are.
    """

    plan: Plan
    commit: str | None
    tag: str | None = None
    files: int = 0


def push(
    study: Study,
    repository: str,
    *,
    private: bool = False,
    parent: str | None = None,
    replace: bool = False,
    tag: str | None = None,
    dry_run: bool = False,
    check: Callable[[Study], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Pushed:
    """Push a study to a dataset repository.

    1. The study is verified from its bytes to its meaning, and its card is filled in.
    2. It is compared with the repository, and what is not allowed is refused.
    3. A missing repository is created, and everything is sent as one commit on top of what was compared.
       Content that the Hub has from an interrupted push is not sent again.
    4. What the Hub states of every file is compared with the manifest.
    5. The commit gets its tag, whose message holds the logical SHA-256 of the rows.
    """
    is_odd = tag is not None and (not _TAG.fullmatch(tag) or tag in {hub.MAIN, "HEAD"})
    if is_odd or (tag is not None and hub.is_commit(tag.lower())):
        raise UsageError(
            f"{tag!r} cannot be a tag",
            expected="letters, digits, and . _ + -, such as v1.0.0; no SHA, and no name that git keeps",
        )
    if hub.is_offline():
        raise hub.UnreachableError(
            "a push needs the Hub", found="HF_HUB_OFFLINE is set", remedy="unset HF_HUB_OFFLINE"
        )
    say("verifying the study")
    verify_study(study)  # 1
    check(study)
    _check_filled(study)
    remote = _read_remote(repository)  # 2
    plan = _plan(study, repository, remote)
    tagged = _tagged_commit(repository, tag) if tag and remote else None
    check_push(plan, study, remote, parent=parent, private=private)
    if not replace:
        _check_append_only(plan, _grown(study, plan, remote))
    if tag and tagged and (not plan.is_empty or tagged != plan.head):
        raise _tag_taken(repository, tag, tagged, plan.head if plan.is_empty else "a new commit")
    if dry_run:
        return Pushed(plan, plan.head if plan.is_empty else None, tag)
    commit = plan.head
    if commit is None or not plan.is_empty:  # 3
        say(f"sending {len(plan.added) + len(plan.changed)} files")
        if commit is None:
            with hub.telling(repository, "creating the repository"):
                hub.client().create_repo(repository, repo_type="dataset", private=private)
            commit = hub.checked_commit(hub.info_of(repository).sha, repository)
        commit = _commit(study, plan, commit)
    checked = _check_pushed(study, repository, commit)  # 4
    if tag is not None:  # 5
        _tag(study, repository, tag, commit)
    return Pushed(plan, commit, tag, checked)


def check_push(plan: Plan, study: Study, remote: Remote | None, *, parent: str | None, private: bool) -> None:
    """Check that the repository is this study's, at the expected commit, and private where it has to be."""
    if remote and remote.manifest and remote.manifest.study != study.name:
        raise UsageError(
            f"{plan.repository} holds another study",
            expected=study.name,
            found=remote.manifest.study,
            remedy="give the study a repository of its own",
        )
    if parent is not None and parent != plan.head:
        raise VerificationError(
            f"{plan.repository} is not at the commit that this push is based on; nothing was changed",
            expected=parent,
            found=plan.head or "no such repository",
            remedy="pull what is there now, look at it, and push again on top of it",
        )
    if private and remote and not remote.is_private:
        raise UsageError(
            f"{plan.repository} is there and is public: a push does not make it private",
            remedy="leave out --private; or make it private in its settings on the Hub, and push then",
        )


def _check_append_only(plan: Plan, grown: Collection[str]) -> None:
    """Check that no rows that others may have cited are changed or removed, nor what was registered."""
    guarded = [
        n for n in (*plan.changed, *plan.deleted) if n.endswith(".parquet") or n.startswith(REGISTRATION)
    ]
    lost = [name for name in guarded if name not in grown]
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
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        info = hub.info_of(repository)
    except hub.RefusedError as error:
        if isinstance(error.__cause__, RepositoryNotFoundError) and not isinstance(
            error.__cause__, GatedRepoError
        ):
            return None
        raise
    head = hub.checked_commit(info.sha, repository)
    files = hub.list_files(repository, head)
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
        manifest = parse_manifest(raw, f"{repository}@{head}/{MANIFEST_NAME}")
    return Remote(head, files, manifest, is_private=info.private is True)


def _at(repository: str, commit: str) -> Origin:
    return Origin(repository, commit, commit, repository)


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


def _plan(study: Study, repository: str, remote: Remote | None) -> Plan:
    """Compare a study with a repository."""
    stated, files = remote.files if remote else {}, _files(study)
    known = study.manifest.files
    same = {
        name
        for name, path in files.items()
        if name in stated and stated[name].is_file(path, known[name].sha256 if name in known else "")
    }
    return Plan(
        repository,
        remote.head if remote else None,
        added=tuple(sorted(set(files) - set(stated))),
        changed=tuple(sorted((set(files) & set(stated)) - same)),
        deleted=tuple(sorted(set(stated) - set(files))),
        same=tuple(sorted(same)),
    )


def _grown(study: Study, plan: Plan, remote: Remote | None) -> list[str]:
    """Return the changed chains of a registration that go on where those on the Hub end."""
    if remote is None:
        return []
    here, chains = _at(plan.repository, remote.head), [n for n in plan.changed if n.endswith(_CHAIN)]
    return [
        name
        for name in chains
        if name.startswith(REGISTRATION)
        and read_bytes(study.folder / name).startswith(read_file(here, name, remote.files, LARGEST_CHAIN))
    ]


def _commit(study: Study, plan: Plan, head: str) -> str:
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
    stated = hub.list_files(repository, commit)
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


def _tag(study: Study, repository: str, tag: str, commit: str) -> None:
    """Give the commit its tag; a tag that is there already is not moved."""
    tagged = _tagged_commit(repository, tag)
    if tagged is None:
        message = f"{study.name}: logical SHA-256 {study.manifest.logical_sha256}"
        with hub.telling(repository, "the tag"):
            hub.client().create_tag(
                repository, tag=tag, tag_message=message, revision=commit, repo_type="dataset"
            )
    elif tagged != commit:
        raise _tag_taken(repository, tag, tagged, commit)


def _tag_taken(repository: str, tag: str, tagged: str, wanted: str | None) -> VerificationError:
    """Return the error for a tag that is another commit."""
    return VerificationError(
        f"the tag {tag} of {repository} is there already, and is not moved",
        expected=wanted,
        found=tagged,
        remedy="give this version a tag of its own",
    )
