"""Where a run is played: in the back office, or in a foreign world by its name."""

import hashlib
from functools import lru_cache
from importlib import import_module

from toolkit.canonical import canonical, document_sha256
from toolkit.errors import ToolkitError
from toolkit.lab.episodes.episode import Episode
from toolkit.lab.episodes.episode import play as play_at_home
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Policy
from toolkit.lab.tasks.pools import load_task
from toolkit.lab.worlds.agent import ForeignRollout
from toolkit.lab.worlds.foreign import ForeignDesk, ForeignEpisode, ForeignTask, ForeignWorld
from toolkit.noise.regimes import Regime
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study, specification_document

WORLDS = {
    **dict.fromkeys(("bfcl_turns", "bfcl_scenarios"), ("bfcl.world", "Bfcl", "bfcl.parity")),
    "tau2_retail": ("tau2", "Retail", "tau2"),
}
"""Foreign world → its module here, its class, and the module whose `check` is the gate before it."""

AnyEpisode = Episode | ForeignEpisode


@lru_cache
def open_world(name: str) -> ForeignWorld:
    """Return a foreign world by its name, a key of `WORLDS`."""
    module, made, _ = WORLDS[name]
    world: ForeignWorld = getattr(import_module(f"toolkit.lab.worlds.{module}"), made)()
    return world


def check_world(name: str) -> None:
    """Hold the grading of a foreign world against its own project's."""
    import_module(f"toolkit.lab.worlds.{WORLDS[name][2]}").check()


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
    desk = ForeignDesk(at, task, regime, schedule_seed)
    foreign(task.prompt, desk.call)
    return foreign, desk.close()


def foreign_rows(world: str, pool: str) -> list[Row]:
    """Return a foreign world's tasks as rows of `task_pools`: what each consists of, as digests of its parts.

    The texts themselves belong to the other project, and are not copied.
    """
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
