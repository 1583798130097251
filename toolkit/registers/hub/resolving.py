"""From a branch, a tag or a SHA to the one commit that it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, VerificationError
from toolkit.registers.hub.client import client, is_cached, is_offline, repository_cache
from toolkit.registers.hub.failures import RefusedError, UnreachableError, offering_cache, telling
from toolkit.registers.hub.pins import Pin, change_pin, read_pins
from toolkit.registers.hub.reference import checked_commit
from toolkit.registers.origin import Origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.registers.hub.reference import Reference


def resolve(
    reference: Reference, *, offline: bool, accept_moved: bool, say: Callable[[str], None]
) -> tuple[Origin, bool]:
    """Return the commit that a reference means, and whether the Hub can be asked for its files.

    1. A SHA means itself.
    2. The Hub is asked; where it does not answer, what it last said is taken, and this is said.
    3. A name that once was a tag and now is another commit is refused: what was decided on it was decided on
       other bytes. What the Hub said is remembered.

    Raises:
        IncompleteError: no such repository or revision, or no answer and nothing remembered; or it cannot be
            remembered, and the commit is not in the cache.
        VerificationError: the tag was moved.
    """
    offline = offline or is_offline()
    if reference.is_commit:  # 1
        if offline:
            say(f"the Hub was not asked: {reference.repository}@{reference.revision} from the cache")
        return _origin(reference, reference.revision), not offline
    known = read_pins(reference.repository).get(reference.revision)
    try:  # 2
        now = _ask(reference, offline=offline)
    except UnreachableError as error:
        if known is None:
            raise _unknown(reference, error) from None
        say(
            f"{error.problem}: {reference.asked} is taken as commit {known.commit}, as when it was last asked"
        )
        return _origin(reference, known.commit), False
    except RefusedError as error:
        if known is None:
            raise
        raise _gone(reference, known, error) from None
    _remember(reference, now, accept_moved=accept_moved, say=say)  # 3
    return _origin(reference, now.commit), True


def _remember(reference: Reference, now: Pin, *, accept_moved: bool, say: Callable[[str], None]) -> None:
    """Remember what the Hub says; a name that once was a tag is held to its commit, whatever it is now."""
    became_branch: list[Pin] = []

    def changed(known: Pin | None) -> Pin:
        if known is None or not known.is_tag:
            return now
        if known.commit == now.commit:
            became_branch[:] = [] if now.is_tag else [known]
            return known
        if accept_moved:
            return now
        raise _moved(reference, known, now)

    try:
        change_pin(reference.repository, reference.revision, changed)
    except IncompleteError as error:
        if not is_cached(reference.repository, now.commit):
            raise
        say(f"{error.problem}: that {reference.asked} is commit {now.commit} is not remembered")
    if became_branch:
        say(f"{reference.revision} was a tag and is none now: it is held to commit {now.commit} all the same")


def _moved(reference: Reference, known: Pin, now: Pin) -> VerificationError:
    return VerificationError(
        f"the tag {reference.revision} was moved",
        expected=f"commit {known.commit}, as when it was last asked",
        found=f"commit {now.commit}" + ("" if now.is_tag else ", and it is no tag any more"),
        where=reference.repository,
        remedy=f"name a commit, such as {reference.repository}@{known.commit}; "
        "or pull it with --accept-moved, which remembers the new one",
    )


def _ask(reference: Reference, *, offline: bool) -> Pin:
    """Ask the Hub which commit a revision is, and whether it is a tag."""
    if offline:
        raise UnreachableError("the Hub was not asked", where=repository_cache(reference.repository))
    with telling(f"{reference.repository}@{reference.revision}", "asking for the revision"):
        api = client()
        commit = api.dataset_info(reference.repository, revision=reference.revision, timeout=30).sha
        tags = api.list_repo_refs(reference.repository, repo_type="dataset").tags
        is_tag = any(tag.name == reference.revision for tag in tags)
    return Pin(checked_commit(commit, reference.asked), is_tag)


def _unknown(reference: Reference, error: UnreachableError) -> UnreachableError:
    return UnreachableError(
        f"{reference.asked} was not pulled before, and the Hub cannot be asked now",
        found=error.found or error.problem,
        where=error.where,
        remedy="pull it once with a connection, or name the SHA of a commit that is in the cache",
    )


def _gone(reference: Reference, known: Pin, error: RefusedError) -> RefusedError:
    was = f"when it was last asked it was another name for {known.commit}"
    named = RefusedError(
        error.problem,
        found=error.found,
        where=error.where,
        remedy=f"{was}: name {reference.repository}@{known.commit}"
        if error.has_repository
        else f"{error.remedy}; {was}",
    )
    return offering_cache(named, reference.repository, known.commit)


def _origin(reference: Reference, commit: str) -> Origin:
    return Origin(reference.repository, reference.revision, commit, reference.asked)
