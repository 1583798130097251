"""The page of the world: tools, templates, faults, regimes, and recorded episodes of both designs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.document import episode_document
from toolkit.lab.tasks.pools import POOLS, load_task
from toolkit.lab.tasks.templates import FORMS, REQUESTS_PER_TASK, WEIGHTS
from toolkit.lab.verification.replay import CHOSEN, ReplayedEpisode, choose_pairs
from toolkit.noise.layer import CODES
from toolkit.noise.regimes import ABOUT, LONGEST_RATE_LIMIT, REGIMES
from toolkit.noise.tools import ANY_RESOURCE, APPLIES
from toolkit.registers.study import Study
from toolkit.site.environment import word
from toolkit.site.material import Exhibit, Material
from toolkit.site.page import Entry, Page, run_page
from toolkit.site.registers import shown_call

NAME = "world.html"
EXAMPLES = "validation"
MADE = ("pool", "index", "prompt")


def pages(material: Material) -> Iterator[Page]:
    """Yield the page where a study plays here, with episodes of the first that can be played again."""
    played = ((study.name, choose_pairs(study)) for study in material.studies)
    recorded = next(((name, episodes) for name, episodes in played if episodes), None)
    if recorded or any(map(_has_its_tasks, material.studies)):
        yield page(*recorded or ("", ()))


def page(study: str, recorded: Sequence[ReplayedEpisode]) -> Page:
    """Return the page."""
    return Page(
        NAME,
        "world.html",
        "The world: tools, tasks, faults, and episodes to step through",
        "world",
        {
            "draws": draw_rules(),
            "tools": TOOLS.values(),
            "templates": _templates(),
            "sizes": _shares(REQUESTS_PER_TASK),
            "pools": POOLS.values(),
            "faults": ABOUT,
            "applies": APPLIES,
            "recovery": CODES,
            "regimes": [
                (regime, _shares(regime.mixture.weights.items()) if regime.mixture else ())
                for regime in REGIMES.values()
            ],
            "pairs": pairs(study, recorded),
            "how": CHOSEN,
            "study": study,
        },
        ("world",),
    )


EXHIBIT = Exhibit("toolkit.site.exhibits", pages, Entry("world", "World", NAME))


def _has_its_tasks(study: Study) -> bool:
    """Whether a study's tasks are those that are made here."""
    if not study.has("task_pools") or not set(MADE) <= set(study.table("task_pools").column_names):
        return False
    for row in study.columns("task_pools", MADE).slice(0, 1).to_pylist():
        known = POOLS.get(row["pool"])
        if known and row["index"] < known.size:
            return bool(load_task(f"{row['pool']}:{row['index']}").prompt == row["prompt"])
    return False


def _templates() -> list[dict[str, Any]]:
    """Return the templates with how often each is drawn and the first task of a pool that asks for it."""
    waiting = {name for name, _ in WEIGHTS}
    examples: dict[str, Any] = {}
    for index in range(POOLS[EXAMPLES].size):
        task = load_task(f"{EXAMPLES}:{index}")
        for template in waiting & set(task.templates):
            examples[template] = task
        waiting -= set(task.templates)
        if not waiting:
            break
    shares = dict(_shares(WEIGHTS))
    return [
        {
            "name": name,
            "share": shares[name],
            "forms": [(form.name, form.phrasings) for form in FORMS[name]],
            "example": examples.get(name),
        }
        for name, _ in WEIGHTS
    ]


def _shares(weights: Iterable[tuple[Any, int]]) -> list[tuple[Any, str]]:
    weighted = tuple(weights)
    total = sum(weight for _, weight in weighted)
    return [(name, f"{weight / total:.0%}") for name, weight in weighted]


def draw_rules() -> dict[str, Any]:
    """Return the parameters of every regime for the browser, faults in the order of a draw."""
    return {
        "tools": {
            tool.name: {"kind": tool.kind, "resource": tool.resource}
            for tool in TOOLS.values()
            if tool.kind != "control"
        },
        "applies": {kind: list(faults) for kind, faults in APPLIES.items()},
        "about": dict(ABOUT),
        "any_resource": ANY_RESOURCE,
        "longest_rate_limit": LONGEST_RATE_LIMIT,
        # In a list: JSON objects are sorted by name, and regimes have an order.
        "regimes": [
            {
                "name": regime.name,
                "about": regime.about,
                "fault_rate": regime.fault_rate,
                "flip_rate": regime.flip_rate,
                "weights": dict(regime.mixture.weights) if regime.mixture else None,
                "challenge": regime.challenge,
            }
            for regime in REGIMES.values()
        ],
    }


SHORT = 110
DIGITS = 4
PLACE: Final = ("phase", "pool", "regime", "step", "task", "schedule")


def pairs(study: str, recorded: Sequence[ReplayedEpisode]) -> list[dict[str, Any]]:
    """Return a study's episodes that stand side by side, in order: neighbours of one task and schedule."""
    shown = []
    for _, group in groupby(recorded, key=lambda e: [e.row[name] for name in PLACE]):
        side_by_side = list(group)
        keys = [_keys(episode) for episode in side_by_side]
        sides = [
            _side(
                study,
                episode,
                [(side_by_side[n].run["arm"], keys[n]) for n in range(len(keys)) if n != number],
            )
            for number, episode in enumerate(side_by_side)
        ]
        first = side_by_side[0]
        shown.append(
            {
                "title": f"Task {first.row['task']}, schedule {first.row['schedule']}",
                "place": {name: first.row[name] for name in PLACE},
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


def _keys(recorded: ReplayedEpisode) -> dict[tuple[object, ...], int]:
    """Return the number of the call, from 1, that drew each event key."""
    trace = recorded.episode.trace or ()
    return {(call.tool, *call.key): number for number, call in enumerate(trace, 1) if call.key is not None}


def _side(
    study: str, recorded: ReplayedEpisode, others: Sequence[tuple[Any, dict[tuple[object, ...], int]]]
) -> dict[str, Any]:
    document = episode_document(recorded.episode)
    row, run = recorded.row, recorded.run
    options = " ".join(
        f"--{name} {word(row[name])}" for name in ("phase", "regime", "step", "task", "schedule")
    )
    return {
        "arm": run["arm"],
        "run": run["run_id"],
        "target": run_page(study, run["run_id"]),
        "outcome": "succeeded" if document["true_success"] else "failed",
        "ended": document["ended"],
        "charged": document["calls_charged"],
        "budget": document["budget"],
        "differences": [json.dumps(difference, ensure_ascii=False) for difference in document["differences"]],
        "command": f"toolkit episode replay --study {study} --run {word(run['run_id'])} {options}",
        "calls": [
            _call(call, recorded, others, number) for number, call in enumerate(document["calls"] or (), 1)
        ],
    }


def _call(
    call: Mapping[str, Any],
    recorded: ReplayedEpisode,
    others: Sequence[tuple[Any, dict[tuple[object, ...], int]]],
    number: int,
) -> dict[str, Any]:
    key = call["key"]
    answer = json.dumps(call["answer"], ensure_ascii=False)
    drawn = recorded.episode.schedule.draw(*key) if key else None
    regime = recorded.episode.regime
    return {
        "number": number,
        **shown_call(call),
        "key": f"{key[0]} · {key[1]} · {key[2]}" if key else "",
        "gate": f"{drawn.gate:.{DIGITS}f}" if drawn else "",
        "rate": regime.fault_rate,
        "digest": call["draw"],
        "about": ABOUT.get(call["fault"], "") if call["fault"] else "",
        "answer": answer,
        "is_long": len(answer) > SHORT,
        "short": answer[:SHORT],
        "twins": [(arm, numbers[tuple(key)]) for arm, numbers in others if key and tuple(key) in numbers],
    }
