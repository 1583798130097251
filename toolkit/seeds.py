"""Every seed, derived by SHA-256 from named parts.

A seed is a whole number in [0, 2^64). Each level of a derivation (run → row → slot; task → evaluation
schedule; pool → world) hashes in a domain of its own, so that no two levels ever meet and nothing is added.

The message that is hashed can be written down in any language:

    domain ‖ 0x00 ‖ seed (8 bytes, big endian) ‖ for each field: tag ('i' or 's') ‖ length (4 bytes) ‖ payload

with whole numbers as 8 bytes, big endian, and text as UTF-8 in normal form C. A derived seed is the first 8
bytes of the message's SHA-256, big endian:

    run          domain run/v1         parent: the run's number       fields: root
    row          domain row/v1         parent: the run's seed         fields: step, position of the task
    slot         domain slot/v1        parent: the row's seed         fields: slot
    group        domain group/v1       parent: the loop's seed        fields: step, name of the task, repeat
    evaluation   domain evaluation/v1  parent: index of the schedule  fields: identifier of the task
    world        domain world/v1       parent: number of the candidate  fields: name of the pool
    order        domain order/v1       parent: the run's seed         fields: epoch
    sampling     domain sampling/v1    parent: the run's number       fields: root, name of the run
    rollout      domain rollout/v1     parent: the sampling seed      fields: step, position, slot
    sample       domain sample/v1      parent: the sampling seed      fields: step, set, task, schedule, slot
    shared       domain shared/v1      parent: index of the schedule  fields: root, set, task, slot
    decision     domain decision/v1    parent: a shared sample's seed
    surface      domain surface/v1     parent: a shared sample's seed
    turn         domain turn/v1        parent: the sample's seed      fields: turns before
    regroup      domain regroup/v1     parent: position of the task   fields: root, design
    drift        domain drift/v1       parent: 0                      fields: name, and the design of samples

The root of a run is the name of its study and, after a space, the anchor of its registration. A task that a
step meets twice (blocking) has one position.

What a policy samples is its run's own, or shared. A sample of its own is one stream, drawn from whenever
something is chosen. A shared sample knows no arm, run, seed or step: its n-th decision takes the n-th number
of the decisions' stream, its n-th surface token that of the tokens', whatever was chosen before. Policies
that are alike thus choose alike, and each by its own probabilities.

A stream hashes domain stream/v1, its seed and a bare counter of 8 bytes that starts at 0; each hash gives
four words of 8 bytes, in order. A number below n is word · n / 2^64, rounded down.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count
from struct import Struct
from typing import TypeVar
from unicodedata import normalize

Field = int | str
T = TypeVar("T")

BITS = 64
_WORDS = Struct(">4Q")
_UNIT = 2.0**-53
_DROPPED_BITS = 11
LIMIT = 1 << BITS


def encode_field(field: Field) -> bytes:
    """Return a field's bytes: tag, length, payload."""
    if isinstance(field, int):
        tag, payload = b"i", field.to_bytes(8, "big")
    else:
        tag, payload = b"s", normalize("NFC", field).encode()
    return tag + len(payload).to_bytes(4, "big") + payload


def prefix(domain: str, seed: int) -> bytes:
    """Return the start of a message: its domain and its seed."""
    return domain.encode() + b"\0" + seed.to_bytes(8, "big")


def derive(domain: str, seed: int, *fields: Field) -> int:
    """Return the seed that a parent seed and named parts give in a domain."""
    message = prefix(domain, seed) + b"".join(map(encode_field, fields))
    return int.from_bytes(sha256(message).digest()[:8], "big")


def run_seed(study: str, seed: int) -> int:
    """Return the seed of a run; the arms of one seed share it, so that they meet the same rows."""
    return derive("run/v1", seed, study)


def row_seed(run: int, step: int, position: int) -> int:
    """Return the schedule seed of a training row: one task at one step (Paper app:env)."""
    return derive("row/v1", run, step, position)


def slot_seed(row: int, slot: int) -> int:
    """Return the schedule seed of one rollout of a row under the independent design (Paper app:env)."""
    return derive("slot/v1", row, slot)


def group_seed(seed: int, step: int, task: str, repeat: int) -> int:
    """The schedule seed of a row in anybody's training loop, where tasks have names and no positions."""
    return derive("group/v1", seed, step, task, repeat)


def evaluation_seed(task_id: str, schedule: int) -> int:
    """Return the seed of an evaluation schedule: distinct across tasks, equal across arms and checkpoints."""
    return derive("evaluation/v1", schedule, task_id)


def world_seed(pool: str, candidate: int) -> int:
    """Return the seed of a task's world."""
    return derive("world/v1", candidate, pool)


def order_seed(run: int, epoch: int) -> int:
    """Return the seed of the order in which a run meets its training tasks for the epoch-th time."""
    return derive("order/v1", run, epoch)


def sampling_seed(study: str, run_id: str, seed: int) -> int:
    """Return the seed of everything that a run's policy samples; each run has its own."""
    return derive("sampling/v1", seed, study, run_id)


def rollout_seed(sampling: int, step: int, position: int, slot: int) -> int:
    """Return the seed of what the policy samples in one training rollout."""
    return derive("rollout/v1", sampling, step, position, slot)


def sample_seed(sampling: int, step: int, name: str, episode: tuple[str, int, int]) -> int:
    """Return the seed of what the policy samples in one episode of an evaluation set or diagnostic."""
    return derive("sample/v1", sampling, step, name, *episode)


def shared_seed(study: str, name: str, episode: tuple[str, int, int]) -> int:
    """Return the seed of what every policy of a study samples in an episode of an evaluation set."""
    task, schedule, slot = episode
    return derive("shared/v1", schedule, study, name, task, slot)


def decision_seed(shared: int) -> int:
    """Return the seed of the stream whose n-th number decides the n-th decision of a shared sample."""
    return derive("decision/v1", shared)


def surface_seed(shared: int) -> int:
    """Return the seed of the stream whose n-th number decides the n-th surface token of a shared sample."""
    return derive("surface/v1", shared)


def turn_seed(sample: int, turn: int) -> int:
    """Return the seed of what a language model samples in one turn of a conversation."""
    return derive("turn/v1", sample, turn)


def regroup_seed(root: str, design: str, task: int) -> int:
    """Return the seed of the groups that a probe puts together from a task's rollouts, for a design."""
    return derive("regroup/v1", task, root, design)


def drift_seed(name: str, design: str = "") -> int:
    """Return the seed of the tasks and schedules of a measured drift, or of what is sampled in a design."""
    return derive("drift/v1", 0, name, *filter(None, (design,)))


def units(seed: int) -> Iterator[float]:
    """Yield numbers in [0, 1) without end: the first 53 bits of each word of the seed's stream."""
    start = prefix("stream/v1", seed)
    for number in count():
        for word in _WORDS.unpack(sha256(start + number.to_bytes(8, "big")).digest()):
            yield (word >> _DROPPED_BITS) * _UNIT


class Stream:
    """A sequence of pseudorandom words for generating tasks: SHA-256 in counter mode, four words a hash."""

    __slots__ = ("_count", "_start", "_words")

    def __init__(self, seed: int) -> None:
        self._start = prefix("stream/v1", seed)
        self._count = 0
        self._words: list[int] = []

    def word(self) -> int:
        """Return the next word, uniform in [0, 2^64)."""
        if not self._words:
            digest = sha256(self._start + self._count.to_bytes(8, "big")).digest()
            self._words = list(_WORDS.unpack(digest))[::-1]
            self._count += 1
        return self._words.pop()

    def below(self, limit: int) -> int:
        """Return a whole number in [0, limit); its bias is under limit / 2^64."""
        if limit < 1:
            raise ValueError(f"there is no whole number in [0, {limit})")
        return self.word() * limit >> BITS

    def between(self, low: int, high: int) -> int:
        """Return a whole number in [low, high]."""
        return low + self.below(high - low + 1)

    def choice(self, items: Sequence[T]) -> T:
        """Return one item."""
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[tuple[T, int]]) -> T:
        """Return one item of (item, whole weight) pairs."""
        if any(weight < 1 for _, weight in items):
            raise ValueError("weights must be positive")
        at = self.below(sum(weight for _, weight in items))
        for item, weight in items:
            if at < weight:
                return item
            at -= weight
        raise ValueError("there is nothing to choose from")

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return distinct items in random order."""
        if count > len(items):
            raise ValueError(f"cannot draw {count} of {len(items)} items")
        # Fisher and Yates, on the positions that were touched alone: the items may be a long range.
        moved: dict[int, int] = {}
        chosen = []
        for at in range(count):
            picked = at + self.below(len(items) - at)
            chosen.append(items[moved.get(picked, picked)])
            moved[picked] = moved.get(at, at)
        return chosen

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order."""
        return self.sample(items, len(items))
