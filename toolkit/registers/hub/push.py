"""Pushing a study: verified, compared, sent as one commit, and compared with what the Hub then states."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import UsageError, VerificationError
from toolkit.files import read_bytes
from toolkit.registers.hub.client import bars, client, is_offline
from toolkit.registers.hub.failures import UnreachableError, telling
from toolkit.registers.hub.plan import (
    REGISTRATION,
    Plan,
    check_filled,
    check_push,
    plan_push,
    published_files,
    tag_taken,
)
from toolkit.registers.hub.reference import MAIN, checked_commit, is_commit
from toolkit.registers.hub.stated import content_at, read_remote, stated_files, tagged_commit
from toolkit.registers.study import verify_study

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.registers.study import Study

_TAG = re.compile(r"[A-Za-z0-9](?!.*\.\.)[\w.+-]{0,99}(?<!\.)(?<!\.lock)", re.ASCII)
_CHAIN = "/LATER.chain"
"""What was registered later, one line a step: it grows."""


@dataclass(frozen=True)
class Pushed:
    """What a push did, or would do.

    Args:
        plan: what was different.
        commit: the repository's commit that holds the study; None where nothing was sent, only planned.
        tag: the tag that means it.
        files: how many of its files the Hub was seen to state as they are.
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

    1. The study is verified from its bytes to its meaning, and its card says something.
    2. It is compared with the repository, and what is not allowed is refused.
    3. A missing repository is created, and everything is sent as one commit on top of what was compared.
       Content that the Hub has from an interrupted push is not sent again.
    4. What the Hub states of every file is compared with the manifest.
    5. The commit gets its tag, whose message holds the logical SHA-256 of the rows.

    Args:
        study: the study.
        repository: `owner/name`.
        private: whether a repository that is created is private; one that is there has to be.
        parent: SHA of the commit that the pusher worked from; the head is refused where it is another.
        replace: whether rows and registrations that the repository has may be changed or removed.
        tag: name of the version.
        dry_run: whether to stop before anything is changed.
        check: raises where the study is not to be pushed, such as with a registration that does not load.
        say: told what is being done.

    Raises:
        UsageError: the repository holds something else, or is public and not to be; rows or a registration
            would change; the tag cannot be one.
        IncompleteError: the Hub cannot be reached or does not permit it.
        DamagedError: the study is not what its manifest names.
        VerificationError: somebody else has committed; the tag is taken; the Hub states other content.
    """
    if tag is not None:
        _check_tag(tag)
    if is_offline():
        raise UnreachableError("a push needs the Hub", found="HF_HUB_OFFLINE is set", remedy="unset it")
    say("verifying the study")
    verify_study(study)  # 1
    check(study)
    check_filled(study)
    remote = read_remote(repository)  # 2
    plan = plan_push(study, repository, remote)
    wanted = (tag, tagged_commit(repository, tag) if remote else None) if tag else None
    check_push(
        plan,
        study,
        remote,
        parent=parent,
        replace=replace,
        tag=wanted,
        private=private,
        grown=_grown(study, plan),
    )
    if dry_run:
        return Pushed(plan, plan.head if plan.is_empty else None, tag)
    commit = plan.head
    if commit is None or not plan.is_empty:  # 3
        say(f"sending {len(plan.added) + len(plan.changed)} files")
        commit = _commit(study, plan, plan.head or _create(repository, private=private))
    checked = _check_stated(study, repository, commit)  # 4
    if tag is not None:  # 5
        _tag(study, repository, tag, commit)
    return Pushed(plan, commit, tag, checked)


def _check_tag(tag: str) -> None:
    """Check that git takes a tag, and that it means neither a commit nor a branch.

    Raises:
        UsageError: it does not.
    """
    if not _TAG.fullmatch(tag) or is_commit(tag.lower()) or tag in {MAIN, "HEAD"}:
        raise UsageError(
            f"{tag!r} cannot be a tag",
            expected="letters, digits, and . _ + -, such as v1.0.0; no SHA, and no name that git keeps",
        )


def _grown(study: Study, plan: Plan) -> list[str]:
    """Return the changed chains of a registration that go on where those on the Hub end."""
    if plan.head is None:
        return []
    chains = [name for name in plan.changed if name.startswith(REGISTRATION) and name.endswith(_CHAIN)]
    return [
        name
        for name in chains
        if read_bytes(study.folder / name).startswith(content_at(plan.repository, plan.head, name))
    ]


def _create(repository: str, *, private: bool) -> str:
    """Create a repository and return its first commit."""
    with telling(repository, "creating the repository"):
        client().create_repo(repository, repo_type="dataset", private=private)
        head = client().dataset_info(repository, timeout=30).sha
    return checked_commit(head, repository)


def _commit(study: Study, plan: Plan, head: str) -> str:
    """Send everything that differs as one commit on top of the head that was compared; return its SHA."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    files = published_files(study)
    changes = [CommitOperationAdd(name, files[name][0]) for name in (*plan.added, *plan.changed)]
    with bars(), telling(plan.repository, "the push"):
        done = client().create_commit(
            plan.repository,
            [*changes, *(CommitOperationDelete(name, is_folder=False) for name in plan.deleted)],
            commit_message=f"Registers of {study.name}",
            commit_description=f"Logical SHA-256 {study.manifest.logical_sha256}",
            repo_type="dataset",
            revision="main",
            parent_commit=head,
        )
    return checked_commit(done.oid, plan.repository)


def _check_stated(study: Study, repository: str, commit: str) -> int:
    """Check that the Hub states of every file what the manifest does, and states no other; count them."""
    stated, files = stated_files(repository, commit), published_files(study)
    other = set(stated) ^ set(files)
    other |= {n for n, (path, sha256) in files.items() if n in stated and not stated[n].is_file(path, sha256)}
    if other:
        raise VerificationError(
            "what the Hub states of the commit is not what was pushed",
            expected="the files of the manifest, each with its hash",
            found=", ".join(sorted(other)[:5]),
            where=f"{repository}@{commit}",
            remedy="do not cite this commit; push again",
        )
    return len(files)


def _tag(study: Study, repository: str, tag: str, commit: str) -> None:
    """Give the commit its tag; a tag that is there already is not moved."""
    tagged = tagged_commit(repository, tag)
    if tagged is None:
        said = f"{study.name}: logical SHA-256 {study.manifest.logical_sha256}"
        with telling(repository, "the tag"):
            client().create_tag(repository, tag=tag, tag_message=said, revision=commit, repo_type="dataset")
    elif tagged != commit:
        raise tag_taken(repository, tag, tagged, commit)
