"""What a push would change in a repository, and what forbids it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import UsageError, VerificationError
from toolkit.files import file_sha256, read_text
from toolkit.registers.cards.documents import CARD
from toolkit.registers.manifest import MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from toolkit.registers.hub.stated import Remote
    from toolkit.registers.study import Study

REGISTRATION = "prereg/"
"""Where a study carries its registration."""

SHOWN = 5


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
    """Check that the card was filled in: it is the page that readers land on.

    Raises:
        UsageError: it says what it said as a template.
    """
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
    same = {
        name
        for name, (path, sha256) in files.items()
        if name in stated and stated[name].is_file(path, sha256)
    }
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
    private: bool = False,
    grown: Collection[str] = (),
) -> None:
    """Check that a push is allowed.

    1. The repository is this study's.
    2. It is at the commit that the pusher worked from, where they said which.
    3. No rows that others may have cited are changed or removed, nor is what was registered, unless that is
       what is wanted.
    4. The tag is free, or means this content already.
    5. It is private where that is wanted: a push does not hide what everybody can see.

    Args:
        plan: what would be done.
        study: the study.
        remote: the repository; None where it is to be created.
        parent: SHA of the commit that the pusher worked from.
        replace: whether rows and what was registered may be changed or removed.
        tag: the tag that is wanted, and the commit that it means now.
        private: whether only some people may see it.
        grown: changed files that begin with what the repository has of them.

    Raises:
        UsageError: it is another study's; or rows would change and nobody said so; or it is public.
        VerificationError: it is at another commit, or the tag is.
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
    lost = [name for name in (*plan.changed, *plan.deleted) if is_guarded(name) and name not in grown]
    if lost and not replace:  # 3
        more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        what = "rows" if any(name.endswith(".parquet") for name in lost) else "a registration"
        raise UsageError(
            f"the push would change or remove {what} that {plan.repository} has; registers are append-only",
            found=", ".join(lost[:SHOWN]) + more,
            remedy="add files instead of changing them; or --replace, with a new tag and a word in the card",
        )
    if tag and tag[1] and (not plan.is_empty or tag[1] != head):  # 4
        raise tag_taken(plan.repository, tag[0], tag[1], head if plan.is_empty else "a new commit")
    if private and remote and not remote.is_private:  # 5
        raise UsageError(
            f"{plan.repository} is there and is public: a push does not make it private",
            remedy="leave out --private; or make it private in its settings on the Hub, and push then",
        )


def is_guarded(name: str) -> bool:
    """Whether a file is not to be changed or removed: rows, and what was registered."""
    return name.endswith(".parquet") or name.startswith(REGISTRATION)


def tag_taken(repository: str, tag: str, tagged: str, wanted: str | None) -> VerificationError:
    """Return the error for a tag that is another commit."""
    return VerificationError(
        f"the tag {tag} of {repository} is there already, and is not moved",
        expected=wanted,
        found=tagged,
        remedy="give this version a tag of its own",
    )
