"""Playing an episode again from its document: the same calls must meet the same answers.

Steps, whose numbers the code repeats:

1. The document names a task of this generator, a regime and a schedule seed.
2. Each call is made again; its answer, event key, draw and fault must be those of the document.
3. The outcome must be that of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.episodes.desk import Desk
from toolkit.episodes.document import call_document, episode_document
from toolkit.episodes.episode import Episode, close
from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.noise.regimes import REGIMES
from toolkit.tasks.pools import load_task
from toolkit.tasks.task import canonical, task_sha256

SHOWN = 300
LONGEST_SEED = 20


def replay(document: Mapping[str, Any]) -> Episode:
    """Play an episode again and return it.

    Args:
        document: as `episode_document` returns it.

    Raises:
        DamagedError: the document is not one of an episode, or its task is another.
        IncompleteError: it holds no calls.
        VerificationError: something came out otherwise.
    """
    desk = _desk(document)  # 1
    calls = document.get("calls")
    if calls is None:
        raise IncompleteError("the episode's calls were not kept", remedy="record it with its calls")
    try:
        for number, recorded in enumerate(calls):  # 2
            if not recorded["verbatim"]:
                raise IncompleteError(
                    f"call {number} cannot be made again: JSON has no word for what the agent sent",
                    found=recorded["arguments"],
                )
            desk.call(recorded["tool"], recorded["arguments"])
            made = call_document(desk.trace[-1], desk.schedule) if desk.trace else {}
            _same(f"call {number}", recorded, made)
        episode = close(desk)  # 3
        _same("the outcome", {**document, "calls": None}, {**episode_document(episode), "calls": None})
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise _not_an_episode(error) from None
    return episode


def _desk(document: Mapping[str, Any]) -> Desk:
    try:
        task = load_task(document["task"])
        regime = REGIMES[document["regime"]]
        seed = _seed(document["schedule_seed"])
        desk = Desk(task, regime, seed, traced=True)
        recorded = document["task_sha256"]
    except (UsageError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _not_an_episode(error) from None
    if recorded != task_sha256(task):
        raise DamagedError(
            f"task {task.task_id} is not the one that the episode was played on",
            expected=recorded,
            found=task_sha256(task),
            remedy="use the version of this package that recorded the episode",
        )
    return desk


def _seed(text: Any) -> int:
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= LONGEST_SEED):
        raise TypeError("a schedule seed is text: a whole number in decimal")
    return int(text)


def _same(what: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for name in {**expected, **found}:
        left, right = _text(expected, name), _text(found, name)
        if left != right:
            raise VerificationError(
                f"{what} came out otherwise", expected=left[:SHOWN], found=right[:SHOWN], where=name
            )


def _text(document: Mapping[str, Any], name: str) -> str:
    return canonical(document[name]) if name in document else "nothing"


def _not_an_episode(error: Exception) -> DamagedError:
    return DamagedError(
        "this is not the document of an episode",
        expected="what `toolkit episode play --json` prints",
        found=f"{type(error).__name__}: {error}"[:SHOWN],
    )
