"""The page of the world: tools, templates, faults, regimes, and recorded episodes of both designs."""

from collections.abc import Iterator
from typing import Any

from toolkit.backoffice.tools import ANY_RESOURCE, TOOLS
from toolkit.episodes.recovery import CODES
from toolkit.noise.faults import ABOUT, APPLIES, LONGEST_RATE_LIMIT
from toolkit.noise.regimes import REGIMES
from toolkit.registers.study import Study
from toolkit.tasks.pools import POOLS, load_task
from toolkit.tasks.templates import FORMS, REQUESTS_PER_TASK, WEIGHTS
from toolkit.website.material import Material
from toolkit.website.page import Page
from toolkit.website.transcripts import pairs

NAME = "world.html"
EXAMPLES = "validation"
MADE = ("pool", "index", "prompt")


def pages(material: Material) -> Iterator[Page]:
    """Yield the page where a study plays in this back office; studies of other worlds have none here."""
    if not plays_here(material):
        return
    yield Page(
        NAME,
        "world.html",
        "The world: tools, tasks, faults, and episodes to step through",
        "world",
        {
            "draws": draw_rules(),
            "tools": [_tool(name) for name in TOOLS],
            "templates": _templates(),
            "sizes": _shares(REQUESTS_PER_TASK),
            "pools": POOLS.values(),
            "faults": [_fault(fault) for fault in ABOUT],
            "regimes": [_regime(name) for name in REGIMES],
            "pairs": pairs(material.recorded),
            "how": material.recorded_how,
            "studies": list(dict.fromkeys(recorded.study for recorded in material.recorded)),
        },
        ("world",),
    )


def plays_here(material: Material) -> bool:
    """Whether a study of the site plays in this back office: its tasks are those that are made here."""
    return bool(material.recorded) or any(map(_has_its_tasks, material.studies))


def _has_its_tasks(study: Study) -> bool:
    if not study.has("task_pools") or not set(MADE) <= set(study.table("task_pools").column_names):
        return False
    for row in study.columns("task_pools", MADE).slice(0, 1).to_pylist():
        known = POOLS.get(row["pool"])
        if known and row["index"] < known.size:
            return bool(load_task(f"{row['pool']}:{row['index']}").prompt == row["prompt"])
    return False


def _tool(name: str) -> dict[str, Any]:
    tool = TOOLS[name]
    return {
        "name": name,
        "kind": tool.kind,
        "about": tool.about,
        "resource": tool.resource,
        "parameters": [(p.name, p.type, p.about, p.required, ", ".join(p.choices)) for p in tool.parameters],
        "faults": APPLIES[tool.kind],
    }


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


def _shares(weights: tuple[tuple[Any, int], ...]) -> list[tuple[Any, str]]:
    total = sum(weight for _, weight in weights)
    return [(name, f"{weight / total:.0%}") for name, weight in weights]


def _fault(fault: Any) -> dict[str, Any]:
    return {
        "name": fault,
        "about": ABOUT[fault],
        "meets": [kind for kind, faults in APPLIES.items() if fault in faults],
        "recovery": CODES.get(fault, ""),
    }


def _regime(name: str) -> dict[str, Any]:
    regime = REGIMES[name]
    weights = dict(regime.mixture.weights) if regime.mixture else {}
    total = sum(weights.values())
    return {
        "name": name,
        "about": regime.about,
        "fault_rate": regime.fault_rate,
        "flip_rate": regime.flip_rate,
        "mixture": [(fault, f"{weight / total:.0%}") for fault, weight in weights.items()],
    }


def draw_rules() -> dict[str, Any]:
    """Return the parameters of every regime, as data for the browser.

    A tool's faults are those that apply to its kind, in the order in which a draw's second word reaches them.
    """
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
