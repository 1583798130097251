"""The draw of an event: what a schedule's seed says about an event key, and nothing else.

    message = "noise/v1" ‖ 0x00 ‖ seed ‖ fields      (see `toolkit.seeds` for the encoding)
    W_k     = the k-th 8 bytes of SHA-256(message), big endian
    U_k     = (W_k >> 11) · 2^-53                     uniform in [0, 1)

U_0 decides whether a fault happens (the gate: U_0 < p), U_1 of which type it is, U_2 how strong it is; U_3 is
reserved. Gate and type are words of their own, so that the faults at a lower rate are a subset of those at
a higher one, type by type. SHA-256 is at hand in browsers, DuckDB, Node, Go and Rust: anybody can draw again.

Source:
    Paper app:env, "Event keys and schedules".
"""

from functools import lru_cache
from hashlib import sha256
from struct import Struct
from typing import Literal

from toolkit.seeds import encode_field, prefix, slot_seed

DOMAIN = "noise/v1"
GRADER = ("grader",)

# Which rollouts of a training group share a schedule (paper sec:setting).
Design = Literal["paired", "independent"]

DESIGNS: tuple[Design, ...] = ("paired", "independent")

_WORD = Struct(">Q")
_UNIT = 2.0**-53
_DROPPED_BITS = 11


class Draw:
    """A draw: 32 bytes, and the numbers in [0, 1) that they hold."""

    __slots__ = ("digest", "gate")

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        # U_0: a fault happens where it is below the fault rate. Read of every draw, so made at once.
        self.gate = (_WORD.unpack_from(digest)[0] >> _DROPPED_BITS) * _UNIT

    @property
    def type(self) -> float:
        """U_1: of which type the fault is."""
        return _unit(self.digest, 8)

    @property
    def magnitude(self) -> float:
        """U_2: how strong the fault is."""
        return _unit(self.digest, 16)


class Schedule:
    """One schedule ω: a function from event keys to draws, given by its seed in [0, 2^64)."""

    __slots__ = ("_start", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._start = prefix(DOMAIN, seed)

    def draw(self, tool: str, resource: str, repeat: int) -> Draw:
        """Return the draw of an event key."""
        return Draw(sha256(self._start + _encode(tool, resource, repeat)).digest())

    def grader(self) -> Draw:
        """Return the episode's draw for the grader."""
        return Draw(sha256(self._start + _GRADER_KEY).digest())


def _unit(digest: bytes, at: int) -> float:
    word: int = _WORD.unpack_from(digest, at)[0]
    return (word >> _DROPPED_BITS) * _UNIT


@lru_cache(maxsize=1 << 16, typed=True)
def _encode(tool: str, resource: str, repeat: int) -> bytes:
    return encode_field(tool) + encode_field(resource) + encode_field(repeat)


_GRADER_KEY = b"".join(map(encode_field, GRADER))


def group_seeds(design: Design, row: int, size: int) -> tuple[int, ...]:
    """Return the schedule seed of each rollout of a group: a schedule each, or one shared (sec:setting)."""
    if size < 1:
        raise ValueError(f"a group has at least one rollout, not {size}")
    if design == "paired":
        return (row,) * size
    if design == "independent":
        return tuple(slot_seed(row, slot) for slot in range(size))
    raise ValueError(f"there is no design {design!r}")
