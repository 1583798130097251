"""Where a run is played: in the back office, or in a foreign world, by the same policy."""

import hashlib
from functools import lru_cache
from importlib import import_module
from typing import Any

from toolkit.canonical import canonical, document_sha256
from toolkit.errors import ToolkitError
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.desk import Answer, MakeCall
from toolkit.lab.episodes.episode import Episode
from toolkit.lab.episodes.episode import play as play_at_home
from toolkit.lab.episodes.workflow import Steps
from toolkit.lab.policies.agent import AMBIGUOUS, ERRORS, INDIRECT, PLAIN, SHORT_WAIT, EndedError, Rollout
from toolkit.lab.policies.loglinear import Kind, Policy
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds.foreign import (
    ForeignEpisode,
    ForeignTask,
    ForeignWorld,
    Request,
)
from toolkit.noise.regimes import Regime
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study, specification_document

_SURFACE = tuple(TOOLS)


class ForeignRollout(Rollout):
    """One episode of the embedded policy in a foreign world."""

    def __init__(
        self, world: ForeignWorld, task: ForeignTask, policy: Policy, seed: int, *, shared: bool = False
    ) -> None:
        super().__init__(policy, seed, shared=shared)
        self._tools = world.declaration.tools
        self._task = task
        self._number = {name: at for at, name in enumerate(sorted(self._tools))}

    def __call__(self, _prompt: str, call: MakeCall) -> None:
        """Play the episode."""
        self._call = call
        self._late = self._task.late
        try:
            for request in self._task.requests:
                self._request = request
                self._template = request.template
                self._follow(_steps(request))
                self._make(Call("finish", {}))
        except EndedError:
            return

    def _is_write(self, tool: str) -> bool:
        return self._tools[tool].kind == "write"

    def _slipped(self, wanted: Call) -> Call | None:
        """Return another call of the plan with the same tool, or the right one with a text cut short."""
        for request in self._task.requests:
            for call in request.plan:
                if call.tool == wanted.tool and call.arguments != wanted.arguments:
                    return call
        texts = {n: text for n, text in wanted.arguments.items() if isinstance(text, str) and len(text) > 1}
        if not texts:
            return None
        name, text = list(texts.items())[-1]
        return Call(wanted.tool, {**wanted.arguments, name: text[:-1]})

    def _surface_of(self, tool: str) -> str:
        return _SURFACE[self._number.get(tool, 0) % len(_SURFACE)]

    def _level(self, wanted: Call) -> int:
        if self._request.levels:
            return self._request.levels[self._request.plan.index(wanted)]
        said = self._request.text.casefold()
        given = [str(part).casefold() in said for part in _parts(wanted.arguments)]
        if all(given):
            return PLAIN
        return INDIRECT if any(given) else AMBIGUOUS

    def _kind(self, wanted: Call, answer: Answer, *, is_write: bool) -> Kind | None:
        failed = answer.get("error")
        if failed is not None:
            return ERRORS.get(failed["code"], "refused")
        if is_write or wanted.tool == "wait":
            return None
        if answer["revision"] < self._revision:
            return "stale"
        return "truncated" if answer.get("has_more") else None

    def _noted(self, _wanted: Call, answer: Answer) -> Answer:
        self._revision = max(self._revision, answer.get("revision", 0))
        return answer

    def _continued(self, wanted: Call, _answer: Answer) -> Answer:
        """Ask again: the lists of these worlds have no second page."""
        return self._make(wanted)

    def _was_applied(self, _write: Call) -> bool:
        """Look whether a write of unknown fate was applied: then the revision has moved on."""
        answer = self._make(Call("wait", {"seconds": SHORT_WAIT}))
        if answer.get("revision", 0) <= self._revision:
            return False
        self._revision = answer["revision"]
        return True


def _steps(request: Request) -> Steps:
    for call in request.plan:  # noqa: UP028 - a tuple takes nothing that is sent to it
        yield call


def _parts(value: Any) -> list[Any]:
    """Return the values in arguments, those within lists and objects too."""
    if isinstance(value, dict):
        return [part for each in value.values() for part in _parts(each)]
    if isinstance(value, list):
        return [part for each in value for part in _parts(each)]
    return [value]


WORLDS = {
    **dict.fromkeys(("bfcl_turns", "bfcl_scenarios"), ("bfcl.world", "Bfcl")),
    "tau2_retail": ("tau2", "Retail"),
    "published": ("published.foreign", "Published"),
}
"""Foreign world → its module here, whose `check` is the gate before it, and its class."""

AnyEpisode = Episode | ForeignEpisode


@lru_cache
def open_world(name: str) -> ForeignWorld:
    """Return a foreign world by its name, a key of `WORLDS`."""
    module, made = WORLDS[name]
    world: ForeignWorld = getattr(import_module(f"toolkit.lab.worlds.{module}"), made)()
    return world


def check_world(name: str) -> None:
    """Hold the grading of a foreign world against its own project's."""
    import_module(f"toolkit.lab.worlds.{WORLDS[name][0]}").check()


def worlds_of(study: Study) -> list[str]:
    """Return the foreign worlds that a study's runs were played in."""
    if not study.has("runs") or "specification" not in study.table("runs").column_names:
        return []
    said = [specification_document(row).get("world") for row in study.rows("runs")]
    return [world for world in WORLDS if world in said]


def missing(study: Study) -> ToolkitError | None:
    """Return why a study's rows cannot be played again here: its world's package is missing, or another."""
    try:
        for world in worlds_of(study):
            open_world(world)
    except ToolkitError as error:
        return error
    return None


def play(
    policy: Policy,
    task_id: str,
    regime: Regime,
    schedule_seed: int,
    sample_seed: int,
    *,
    world: str = "",
    shared: bool = False,
    traced: bool = False,
) -> tuple[Rollout, AnyEpisode]:
    """Play a task with the embedded policy."""
    if not world:
        rollout = Rollout(policy, sample_seed, shared=shared)
        return rollout, play_at_home(load_task(task_id), regime, schedule_seed, rollout, traced=traced)
    at = open_world(world)
    pool, _, index = task_id.partition(":")
    task = at.tasks(pool)[int(index)]
    foreign = ForeignRollout(at, task, policy, sample_seed, shared=shared)
    desk = at.desk(task, regime, schedule_seed)
    foreign(task.prompt, desk.call)
    return foreign, desk.close()


def foreign_rows(world: str, pool: str) -> list[Row]:
    """Return a foreign world's tasks as rows of `task_pools`, their texts and plans as digests."""
    return [_task_row(task) for task in open_world(world).tasks(pool)]


def _task_row(task: ForeignTask) -> Row:
    plan = [[call.tool, call.arguments] for request in task.requests for call in request.plan]
    document = {
        "task_id": task.task_id,
        "world_seed": "0",
        "prompt": f"{task.name}, {_digest(task.prompt)}",
        "templates": [request.template for request in task.requests],
        "forms": [task.name],
        "writes": task.writes,
        "budget": task.budget,
        "plan": {"sha256": _digest(canonical(plan))},
        "expected": {},
        "world": {},
    }
    return {
        "pool": task.pool,
        "index": task.index,
        **{name: document[name] for name in ("task_id", "world_seed", "prompt", "writes", "budget")},
        "templates": " ".join(request.template for request in task.requests),
        "forms": task.name,
        "sub_requests": len(task.requests),
        "reads": task.calls - task.writes,
        **{name: canonical(document[name]) for name in ("plan", "expected", "world")},
        "sha256": document_sha256(document),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
