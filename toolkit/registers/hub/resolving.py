"""From a branch, a tag or a SHA to the one commit that it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, VerificationError
from toolkit.registers.hub.client import client, is_offline, repository_cache
from toolkit.registers.hub.failures import UnreachableError, telling
from toolkit.registers.hub.pins import Pin, read_pins, write_pin
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
    3. A tag that now is another commit is refused: what was decided on it was decided on other bytes.

    Raises:
        IncompleteError: no such repository or revision, or no answer and nothing remembered.
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
    if known and known.is_tag and known.commit != now.commit and not accept_moved:  # 3
        raise VerificationError(
            f"the tag {reference.revision} was moved",
            expected=f"commit {known.commit}, as when it was last asked",
            found=f"commit {now.commit}",
            where=reference.repository,
            remedy=f"name a commit, such as {reference.repository}@{known.commit}; "
            "or pull it with --accept-moved, which remembers the new one",
        )
    write_pin(reference.repository, reference.revision, now)
    return _origin(reference, now.commit), True


def _ask(reference: Reference, *, offline: bool) -> Pin:
    """Ask the Hub which commit a revision is, and whether it is a tag."""
    if offline:
        raise UnreachableError("the Hub was not asked", where=repository_cache(reference.repository))
    with telling(f"{reference.repository}@{reference.revision}", "asking for the revision"):
        api = client()
        commit = api.dataset_info(reference.repository, revision=reference.revision, timeout=30).sha
        tags = api.list_repo_refs(reference.repository, repo_type="dataset").tags
    if commit is None:
        raise IncompleteError("the Hub does not say which commit the revision is", where=reference.asked)
    return Pin(commit, any(tag.name == reference.revision for tag in tags))


def _unknown(reference: Reference, error: UnreachableError) -> UnreachableError:
    return UnreachableError(
        f"{reference.asked} was not pulled before, and the Hub cannot be asked now",
        found=error.found or error.problem,
        where=error.where,
        remedy="pull it once with a connection, or name the SHA of a commit that is in the cache",
    )


def _origin(reference: Reference, commit: str) -> Origin:
    return Origin(reference.repository, reference.revision, commit, reference.asked)
