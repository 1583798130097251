"""Recorded episodes of both designs, side by side: what each agent called, which draws both met."""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from toolkit.episodes.document import episode_document
from toolkit.noise.faults import ABOUT
from toolkit.website.material import Recorded
from toolkit.website.page import run_page
from toolkit.website.prose import word

SHORT = 110
DIGITS = 4
PLACE = ("phase", "pool", "regime", "step", "task", "schedule")


def pairs(recorded: Sequence[Recorded]) -> list[dict[str, Any]]:
    """Return episodes that stand side by side, in order: neighbours of one study, task and schedule."""
    shown = []
    for _, group in groupby(recorded, key=lambda e: (e.study, *(e.row[name] for name in PLACE))):
        side_by_side = list(group)
        keys = [_keys(episode) for episode in side_by_side]
        sides = [
            _side(episode, [(side_by_side[n].run["arm"], keys[n]) for n in range(len(keys)) if n != number])
            for number, episode in enumerate(side_by_side)
        ]
        first = side_by_side[0]
        shown.append(
            {
                "title": f"Task {first.row['task']}, schedule {first.row['schedule']}",
                "place": {name: first.row[name] for name in PLACE},
                "study": first.study,
                "prompt": first.episode.task.prompt,
                "task_id": first.episode.task.task_id,
                "seed": str(first.episode.schedule.seed),
                "rate": first.episode.regime.fault_rate,
                "outcome": "; ".join(f"{side['arm']} {side['outcome']}" for side in sides),
                "sides": sides,
                "shared": len(set(keys[0]).intersection(*keys[1:])) if len(keys) > 1 else 0,
            }
        )
    return shown


def _keys(recorded: Recorded) -> dict[tuple[object, ...], int]:
    """Return the number of the call, from 1, that drew each event key."""
    trace = recorded.episode.trace or ()
    return {(call.tool, *call.key): number for number, call in enumerate(trace, 1) if call.key is not None}


def _side(recorded: Recorded, others: Sequence[tuple[Any, dict[tuple[object, ...], int]]]) -> dict[str, Any]:
    document = episode_document(recorded.episode)
    row, run = recorded.row, recorded.run
    options = " ".join(
        f"--{name} {word(row[name])}" for name in ("phase", "regime", "step", "task", "schedule")
    )
    return {
        "arm": run["arm"],
        "run": run["run_id"],
        "target": run_page(recorded.study, str(run["run_id"])),
        "outcome": "succeeded" if document["true_success"] else "failed",
        "ended": document["ended"],
        "charged": document["calls_charged"],
        "budget": document["budget"],
        "differences": [json.dumps(difference, ensure_ascii=False) for difference in document["differences"]],
        "command": f"toolkit episode replay --study {recorded.study} --run {word(run['run_id'])} {options}",
        "calls": [
            _call(call, recorded, others, number) for number, call in enumerate(document["calls"] or (), 1)
        ],
    }


def _call(
    call: dict[str, Any],
    recorded: Recorded,
    others: Sequence[tuple[Any, dict[tuple[object, ...], int]]],
    number: int,
) -> dict[str, Any]:
    key = call["key"]
    answer = json.dumps(call["answer"], ensure_ascii=False)
    drawn = recorded.episode.schedule.draw(*key) if key else None
    regime = recorded.episode.regime
    return {
        "number": number,
        "tool": str(call["tool"]),
        "arguments": ", ".join(f"{name}: {value}" for name, value in call["arguments"].items())
        if isinstance(call["arguments"], dict)
        else str(call["arguments"]),
        "key": f"{key[0]} · {key[1]} · {key[2]}" if key else "",
        "gate": f"{drawn.gate:.{DIGITS}f}" if drawn else "",
        "rate": regime.fault_rate,
        "digest": call["draw"],
        "fault": call["fault"] or "",
        "about": ABOUT.get(call["fault"], "") if call["fault"] else "",
        "blocked_by": call["blocked_by"] or "",
        "charged": call["charged"],
        "answer": answer,
        "is_long": len(answer) > SHORT,
        "short": answer[:SHORT],
        "twins": [(arm, numbers[tuple(key)]) for arm, numbers in others if key and tuple(key) in numbers],
    }
