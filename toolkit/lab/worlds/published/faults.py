"""Faults as the published study draws them: schedules, fates of calls, flips, and a shop that meets them.

`toolkit.noise` cannot carry these: here a blocked attempt counts, and one generator draws a whole fate.
"""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from toolkit.lab.worlds.published.tools import CONTROLS, READS, WRITES, Answer, Shop, error
from toolkit.lab.worlds.published.world import World

WAITS = (15, 30, 45, 60)
PAGE_LEFT = 2
UNAVAILABLE = ("transient", "outage", "outage_ongoing")
KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "search_customers": (),
        "get_customer": ("customer_id",),
        "list_orders": ("customer_id",),
        "check_inventory": ("sku",),
        "reserve_stock": ("order_id", "sku"),
        "create_ticket": ("customer_id",),
    }
)
"""Tool → the arguments that say which resource it touches; of all others, the order."""
WEIGHTS = MappingProxyType(
    {"transient": 0.45, "rate_limit": 0.15, "outage": 0.10, "stale": 0.15, "truncate": 0.15}
)


class Condition(NamedTuple):
    """How often which faults and flips happen."""

    p: float = 0.0
    weights: Mapping[str, float] = WEIGHTS
    q: float = 0.0
    is_challenge: bool = False  # the first attempt of every write fails, and nothing else


class Fate(NamedTuple):
    """What becomes of a call."""

    kind: str
    seconds: int = 0
    dropped: int = 0


class Schedule(NamedTuple):
    """All fates of an episode."""

    seed: int
    condition: Condition

    def fate(self, tool: str, key: str, repeat: int) -> Fate | None:
        """Return the fault of the n-th attempt of a tool at a resource, or nothing."""
        if self.condition.is_challenge:
            return Fate("transient") if tool in WRITES and repeat == 0 else None
        if self.condition.p <= 0:
            return None
        draw = random.Random(seed_of(self.seed, "event", tool, key, repeat))  # noqa: S311 - as theirs
        is_hit = draw.random() < self.condition.p
        seconds, dropped = draw.choice(WAITS), draw.randrange(1_000_000)
        weights = {kind: self.condition.weights.get(kind, 0.0) for kind in kinds(tool)}
        if not is_hit or sum(weights.values()) <= 0:
            return None
        return Fate(draw.choices(list(weights), list(weights.values()))[0], seconds, dropped)

    def flips(self) -> bool:
        """Whether the grader reports a success as a failure."""
        draw = random.Random(seed_of(self.seed, "outcome"))  # noqa: S311 - as theirs
        return draw.random() < self.condition.q


def seed_of(*parts: object) -> int:
    """Return the seed that parts have together."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def training_seed(run_seed: int, condition: str, row: int) -> int:
    """Return the schedule of a row of training: of a prompt of a step."""
    return seed_of("schedule", run_seed, condition, row) % 2**31


def independent_seed(row_seed: int, instance: int, episode: int) -> int:
    """Return a rollout's own schedule: by its environment's instance, and that one's count of episodes."""
    return seed_of("independent", row_seed, instance, episode, "train")


def evaluation_seed(task_id: str, index: int) -> int:
    """Return the schedule of an evaluated episode."""
    return seed_of("eval", task_id, index) % 2**31


def kinds(tool: str) -> tuple[str, ...]:
    """Return the faults that a tool can meet."""
    if tool in CONTROLS:
        return ()
    found = ["transient", "rate_limit", "outage"]
    if tool in READS:
        found += ["stale", "field_dropout"]
    if tool in {"search_customers", "list_orders"}:
        found.append("truncate")
    if tool in WRITES and tool != "create_ticket":
        found.append("timeout_after_commit")
    return tuple(found)


def event_key(tool: str, arguments: Mapping[str, object]) -> str:
    """Return the resource that a call touches; no other argument changes its fate."""
    named = {name: _canonical(arguments.get(name)) for name in KEYS.get(tool, ("order_id",))}
    return json.dumps(named, sort_keys=True, separators=(",", ":"))


def _canonical(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


class FaultyShop(Shop):
    """A shop whose calls meet the faults of a schedule."""

    def __init__(self, make: Callable[[], World], schedule: Schedule) -> None:
        super().__init__(make())
        self.exposures: list[str] = []
        self._make, self._schedule = make, schedule
        self._writes: list[tuple[str, Mapping[str, object]]] = []
        self.attempts: Counter[tuple[str, str]] = Counter()
        self._broken: set[tuple[str, str]] = set()
        self._limited_until = 0

    def call(self, tool: str, arguments: Mapping[str, object]) -> Answer:
        """Make a call and return its answer."""
        if self.is_finished or tool not in READS | WRITES:
            return super().call(tool, arguments)
        at = (tool, event_key(tool, arguments))
        repeat = self.attempts[at]
        self.attempts[at] += 1
        remaining = self._limited_until - self.world.clock
        if remaining > 0:
            return self._failed("rate_limit_ongoing", remaining)
        fate = Fate("outage_ongoing") if at in self._broken else self._schedule.fate(*at, repeat)
        if fate is None:
            return self._carried_out(tool, arguments)
        if fate.kind == "outage":
            self._broken.add(at)
        if fate.kind == "rate_limit":
            self._limited_until = self.world.clock + fate.seconds
            return self._failed(fate.kind, fate.seconds)
        return self._failed(fate.kind) if fate.kind in UNAVAILABLE else self._altered(fate, tool, arguments)

    def _failed(self, kind: str, seconds: int = 0) -> Answer:
        self.calls += 1
        self.exposures.append(kind)
        if seconds:
            message = f"too many calls; the next one is possible in {seconds} seconds"
            return error("RATE_LIMITED", message, retry_after_seconds=seconds)
        return error("SERVICE_UNAVAILABLE", "the call failed, and nothing was done")

    def _carried_out(self, tool: str, arguments: Mapping[str, object]) -> Answer:
        """Make a call as it is, and remember it if it changes something."""
        before = self.world.writes
        answer = super().call(tool, arguments)
        if self.world.writes > before:
            self._writes.append((tool, arguments))
        return answer

    def _altered(self, fate: Fate, tool: str, arguments: Mapping[str, object]) -> Answer:
        """Make a call whose answer is an old one, has something missing, or is lost."""
        if fate.kind == "stale":
            if not self._writes:
                return self._carried_out(tool, arguments)
            self.calls += 1
            self.exposures.append(fate.kind)
            return self._made(tool, arguments, self._before())
        answer = self._carried_out(tool, arguments)
        if "error" in answer:
            return answer
        self.exposures.append(fate.kind)
        if fate.kind == "timeout_after_commit":
            return error("TIMEOUT", "no answer came in time: the call may have been carried out, or not")
        if fate.kind == "field_dropout":
            names = sorted(answer)
            del answer[names[fate.dropped % len(names)]]
            return answer
        shown = answer["results"][:PAGE_LEFT]
        following = answer["offset"] + len(shown)
        is_last = following >= answer["total"]
        return answer | {"results": shown, "truncated": True, "next_offset": None if is_last else following}

    def _before(self) -> World:
        """Return the world before the last write: all earlier ones are made again for it."""
        shop = Shop(self._make())
        for write in self._writes[:-1]:
            shop.call(*write)
        return shop.world
