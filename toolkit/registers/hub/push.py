"""Pushing a study: verified, compared, sent as one commit, and compared with what the Hub then states."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UsageError, VerificationError
from toolkit.files import file_sha256, read_bytes, read_text
from toolkit.registers.cards.dataset import CARD
from toolkit.registers.hub.answers import read_json
from toolkit.registers.hub.client import UnreachableError, bars, client, is_offline, telling
from toolkit.registers.hub.revision import MAIN, checked_commit, is_commit
from toolkit.registers.hub.stated import Remote, content_at, read_remote, stated_files, tagged_commit
from toolkit.registers.manifest import MANIFEST_NAME
from toolkit.registers.study import Study
from toolkit.registers.verified import verify_study

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
    """Check that git takes a tag, and that it means neither a commit nor a branch."""
    if not _TAG.fullmatch(tag) or is_commit(tag.lower()) or tag in {MAIN, "HEAD"}:
        raise UsageError(
            f"{tag!r} cannot be a tag",
            expected="letters, digits, and . _ + -, such as v1.0.0; no SHA, and no name that git keeps",
        )


def _grown(study: Study, plan: Plan) -> list[str]:
    """Return the changed chains of a registration that go on where those on the Hub end."""
    if plan.head is None:
        return []
    return [
        name
        for name in plan.changed
        if name.startswith(REGISTRATION)
        and name.endswith(_CHAIN)
        and read_bytes(study.folder / name).startswith(content_at(plan.repository, plan.head, name))
    ]


def _create(repository: str, *, private: bool) -> str:
    """Create a repository and return its first commit."""
    with telling(repository, "creating the repository"):
        client().create_repo(repository, repo_type="dataset", private=private)
        head = read_json(f"datasets/{repository}")["sha"]
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
    stated = stated_files(repository, commit)
    left = plan_push(study, repository, Remote(commit, stated, None, is_private=False))
    if not left.is_empty:
        raise VerificationError(
            "what the Hub states of the commit is not what was pushed",
            expected="the files of the manifest, each with its hash",
            found=", ".join(sorted((*left.added, *left.changed, *left.deleted))[:5]),
            where=f"{repository}@{commit}",
            remedy="do not cite this commit; push again",
        )
    return len(stated)


def _tag(study: Study, repository: str, tag: str, commit: str) -> None:
    """Give the commit its tag; a tag that is there already is not moved."""
    tagged = tagged_commit(repository, tag)
    if tagged is None:
        message = f"{study.name}: logical SHA-256 {study.manifest.logical_sha256}"
        with telling(repository, "the tag"):
            client().create_tag(
                repository, tag=tag, tag_message=message, revision=commit, repo_type="dataset"
            )
    elif tagged != commit:
        raise tag_taken(repository, tag, tagged, commit)


REGISTRATION = "prereg/"
"""Where a study carries its registration."""

NAMED_FILES = 5


@dataclass(frozen=True)
class Plan:
    """What a push would do.

    Args:
        repository: `owner/name`.
        head: the commit that was compared; None where the repository is to be created.
        added, changed, deleted, same: paths.
    """

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


def published_files(study: Study) -> dict[str, tuple[Path, str]]:
    """Return where each file lies that a repository of the study holds, with its SHA-256, by path."""
    files = {name: (study.folder / name, entry.sha256) for name, entry in study.manifest.files.items()}
    manifest = study.folder / MANIFEST_NAME
    return {**files, MANIFEST_NAME: (manifest, file_sha256(manifest))}


def check_filled(study: Study) -> None:
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


def plan_push(study: Study, repository: str, remote: Remote | None) -> Plan:
    """Compare a study with a repository."""
    stated = remote.files if remote else {}
    files = published_files(study)
    same = {n for n, (path, sha256) in files.items() if n in stated and stated[n].is_file(path, sha256)}
    return Plan(
        repository,
        remote.head if remote else None,
        added=tuple(sorted(set(files) - set(stated))),
        changed=tuple(sorted((set(files) & set(stated)) - same)),
        deleted=tuple(sorted(set(stated) - set(files))),
        same=tuple(sorted(same)),
    )


def check_push(
    plan: Plan,
    study: Study,
    remote: Remote | None,
    *,
    parent: str | None,
    replace: bool,
    tag: tuple[str, str | None] | None,
    private: bool,
    grown: Collection[str],
) -> None:
    """Check that a push is allowed.

    1. The repository is this study's.
    2. It is at the commit that the pusher worked from, where they said which.
    3. No rows that others may have cited are changed or removed, nor is what was registered, unless that is
       what is wanted.
    4. The tag is free, or means this content already.
    5. It is private where that is wanted: a push does not hide what everybody can see.
    """
    if remote and remote.manifest and remote.manifest.study != study.name:  # 1
        raise UsageError(
            f"{plan.repository} holds another study",
            expected=study.name,
            found=remote.manifest.study,
            remedy="give the study a repository of its own",
        )
    head = remote.head if remote else None
    if parent is not None and parent != head:  # 2
        raise VerificationError(
            f"{plan.repository} is not at the commit that this push is based on; nothing was changed",
            expected=parent,
            found=head or "no such repository",
            remedy="pull what is there now, look at it, and push again on top of it",
        )
    guarded = [
        n for n in (*plan.changed, *plan.deleted) if n.endswith(".parquet") or n.startswith(REGISTRATION)
    ]
    lost = [name for name in guarded if name not in grown]
    if lost and not replace:  # 3
        more = f" and {len(lost) - NAMED_FILES} more" if len(lost) > NAMED_FILES else ""
        what = "rows" if any(name.endswith(".parquet") for name in lost) else "a registration"
        raise UsageError(
            f"the push would change or remove {what} that {plan.repository} has; registers are append-only",
            found=", ".join(lost[:NAMED_FILES]) + more,
            remedy="add files instead of changing them; or --replace, with a new tag and a word in the card",
        )
    if tag and tag[1] and (not plan.is_empty or tag[1] != head):  # 4
        raise tag_taken(plan.repository, tag[0], tag[1], head if plan.is_empty else "a new commit")
    if private and remote and not remote.is_private:  # 5
        raise UsageError(
            f"{plan.repository} is there and is public: a push does not make it private",
            remedy="leave out --private; or make it private in its settings on the Hub, and push then",
        )


def tag_taken(repository: str, tag: str, tagged: str, wanted: str | None) -> VerificationError:
    """Return the error for a tag that is another commit."""
    return VerificationError(
        f"the tag {tag} of {repository} is there already, and is not moved",
        expected=wanted,
        found=tagged,
        remedy="give this version a tag of its own",
    )
