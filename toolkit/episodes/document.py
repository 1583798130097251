"""An episode as a JSON document: everything needed to read it, check its draws, and play it again."""

from __future__ import annotations

import json
from typing import Any

from toolkit.backoffice.parameters import shown
from toolkit.episodes.desk import CallRecord
from toolkit.episodes.episode import Episode
from toolkit.episodes.grading import differences
from toolkit.noise.draws import Schedule
from toolkit.tasks.task import task_sha256


def episode_document(episode: Episode) -> dict[str, Any]:
    """Return an episode as JSON values.

    Seeds are texts: JSON readers in other languages lose digits of numbers above 2^53. `calls` is null for
    an episode whose calls were not kept.
    """
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
        "exposures": [exposure._asdict() for exposure in episode.exposures],
        "recovery": {
            code: {"called_for": count, "made": episode.recovered.get(code, 0)}
            for code, count in episode.called_for.items()
        },
        "grader_draw": schedule.grader().digest.hex(),
        "prompt": episode.task.prompt,
        "calls": None if episode.trace is None else [call_document(c, schedule) for c in episode.trace],
    }


def call_document(call: CallRecord, schedule: Schedule) -> dict[str, Any]:
    """Return one call as JSON values, with the digest of the draw of its event key.

    What the agent sent is kept verbatim where JSON has a word for it, and shown in short otherwise.
    """
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
