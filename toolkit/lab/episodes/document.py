"""An episode as a JSON document; played again from there, the same calls must meet the same answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolkit.canonical import canonical
from toolkit.errors import EXCERPT, DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.lab.backoffice.parameters import shown
from toolkit.lab.episodes.desk import CallRecord, Desk
from toolkit.lab.episodes.episode import Episode, close, differences
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.tasks.task import task_sha256
from toolkit.noise.draws import Schedule
from toolkit.noise.regimes import REGIMES

LONGEST_SEED = 20


def episode_document(episode: Episode) -> dict[str, Any]:
    """Return an episode as JSON values; seeds are texts, of which no reader loses digits."""
    schedule = episode.schedule
    return {
        "task": episode.task.task_id,
        "task_sha256": task_sha256(episode.task),
        "regime": episode.regime.name,
        "schedule_seed": str(schedule.seed),
        "true_success": episode.true_success,
        "observed_reward": episode.observed_reward,
        "flipped": episode.flipped,
        "ended": episode.ended,
        "calls_charged": episode.calls,
        "budget": episode.task.budget,
        "world_changed": episode.world_changed,
        "differences": [difference.as_dict() for difference in differences(episode.task, episode.world)],
        "exposures": [exposure.as_dict() for exposure in episode.exposures],
        "recovery": {
            code: {"called_for": count, "made": episode.recovered.get(code, 0)}
            for code, count in episode.called_for.items()
        },
        "grader_draw": schedule.grader().digest.hex(),
        "prompt": episode.task.prompt,
        "calls": None if episode.trace is None else [call_document(c, schedule) for c in episode.trace],
    }


def call_document(call: CallRecord, schedule: Schedule) -> dict[str, Any]:
    """Return one call as JSON values; what JSON has no word for is shown in short."""
    verbatim = _has_json([call.tool, call.arguments])
    drawn = None if call.key is None else schedule.draw(call.tool, *call.key)
    return {
        "tool": call.tool if verbatim else shown(call.tool),
        "arguments": call.arguments if verbatim else shown(call.arguments),
        "verbatim": verbatim,
        "answer": call.answer,
        "key": None if call.key is None else [call.tool, *call.key],
        "draw": None if drawn is None else drawn.digest.hex(),
        "fault": call.fault,
        "blocked_by": call.blocked_by,
        "charged": call.charged,
    }


def _has_json(value: Any) -> bool:
    """Return whether JSON has a word for what an agent sent, and gives the same back."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        return repr(json.loads(text)) == repr(value)
    except (TypeError, ValueError, RecursionError):
        return False


def replay(document: Mapping[str, Any]) -> Episode:
    """Play an episode again and return it."""
    desk = _desk(document)
    calls = document.get("calls")
    if calls is None:
        raise IncompleteError("the episode's calls were not kept", remedy="record it with its calls")
    try:
        for number, recorded in enumerate(calls):
            if not recorded["verbatim"]:
                raise IncompleteError(
                    f"call {number} cannot be made again: JSON has no word for what the agent sent",
                    found=recorded["arguments"],
                )
            desk.call(recorded["tool"], recorded["arguments"])
            made = call_document(desk.trace[-1], desk.schedule) if desk.trace else None
            _same(f"call {number}", recorded, made or {})
        episode = close(desk)
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
        problem = f"task {task.task_id} is not the one that the episode was played on"
        remedy = "use the version of this package that recorded the episode"
        raise DamagedError(problem, expected=recorded, found=task_sha256(task), remedy=remedy)
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
                f"{what} came out otherwise", expected=left[:EXCERPT], found=right[:EXCERPT], where=name
            )


def _text(document: Mapping[str, Any], name: str) -> str:
    return canonical(document[name]) if name in document else "nothing"


def _not_an_episode(error: Exception) -> DamagedError:
    problem = "this is not the document of an episode"
    expected = "what `toolkit episode play --json` prints"
    return DamagedError(problem, expected=expected, found=f"{type(error).__name__}: {error}"[:EXCERPT])
