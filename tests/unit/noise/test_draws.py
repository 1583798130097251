"""The draw against its vectors, in Python and in Node, and against what random numbers must look like.

Every statistical test looks at 100,000 draws of fixed seeds, so that it gives the same answer every time,
and stands beside broken generators that the same function rejects.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from toolkit.noise.draws import GRADER, Draw, Schedule
from toolkit.seeds import LIMIT

VECTORS_FILE = CHECKOUT / "tests/vectors/draws.json"
VECTORS: dict[str, list[dict[str, Any]]] = json.loads(VECTORS_FILE.read_text(encoding="utf-8"))

# Digests that were given and not computed by this package: their first 16 bytes.
GIVEN = {
    ("0", "get_order", "O-10233", 0): "c48e1a4fd7a424ef52531985378799e1",
    ("0", "get_order", "O-10233", 1): "b4c748b3fd7b7223a90806c36028b521",
    ("1", "get_order", "O-10233", 0): "ba4b802a18d8011dac0488d077cc4516",
    (str(2**63), "issue_refund", "O-10233", 0): "3642c3fe88e0becbc77faa4dd32f4a08",
    (str(2**64 - 1), "list_orders", "C-é", 12): "665373ca57a66e51f2bd502924a44af9",
    # The same letter, composed otherwise.
    (str(2**64 - 1), "list_orders", "C-e\u0301", 12): "665373ca57a66e51f2bd502924a44af9",
    ("42", "grader"): "3414c897b62b202fb68af38a2cb1afcf",
    ("42", "ab", "c", 0): "f3b1d89323bb35843fa358d8d7863e89",
    ("42", "a", "bc", 0): "b70bc3cf1b963d4aa8dcf958a96af8ef",
}


def _name(vector: dict[str, Any]) -> str:
    return ascii((vector["seed"], *vector["key"]))


@pytest.mark.parametrize("vector", VECTORS["draws"], ids=_name)
def test_a_draw_is_its_vector_to_the_last_bit(vector: dict[str, Any]) -> None:
    schedule, key = Schedule(int(vector["seed"])), vector["key"]
    draw = schedule.grader() if tuple(key) == GRADER else schedule.draw(*key)
    assert draw.digest.hex() == vector["digest"]
    words = ("gate", "type", "magnitude")
    assert [getattr(draw, word) for word in words] == [vector[word] for word in words]


def test_the_vectors_hold_every_given_digest() -> None:
    held = {(vector["seed"], *vector["key"]): vector["digest"][:32] for vector in VECTORS["draws"]}
    assert {key: held.get(key) for key in GIVEN} == GIVEN


def find_node() -> str:
    """Return where node is; without it, fail on a build server and skip elsewhere."""
    node = shutil.which("node")
    if node is None and os.environ.get("CI"):
        pytest.fail("node is not installed: the vectors were not checked by an independent implementation")
    if node is None:
        pytest.skip("NODE IS MISSING: the vectors were not checked by an independent implementation")
    return node


def in_node(vectors: Path) -> subprocess.CompletedProcess[str]:
    """Check a file of vectors with the implementation in Node."""
    script = CHECKOUT / "tests/vectors/draws.mjs"
    return subprocess.run(
        [find_node(), str(script), str(vectors)], capture_output=True, encoding="utf-8", check=False
    )


def test_an_independent_implementation_in_node_gives_every_vector() -> None:
    done = in_node(VECTORS_FILE)
    counts = ", ".join(f"{len(VECTORS[kind])} {kind}" for kind in ("draws", "seeds", "streams"))
    assert (done.stdout, done.stderr, done.returncode) == (f"equal: {counts}\n", "", 0)


@pytest.mark.parametrize(("seed", "repeat"), [(-1, 0), (LIMIT, 0), (0, -1)])
def test_a_seed_or_a_repeat_out_of_range_overflows(seed: int, repeat: int) -> None:
    with pytest.raises(OverflowError):
        Schedule(seed).draw("get_order", "O-10233", repeat)


@pytest.mark.parametrize(("word", "at"), [("gate", 0), ("type", 8), ("magnitude", 16)])
def test_a_word_is_read_from_its_own_eight_bytes_and_never_one(word: str, at: int) -> None:
    draw = Draw(bytes(at) + b"\x80" + bytes(31 - at))
    words = ("gate", "type", "magnitude")
    assert [getattr(draw, name) for name in words] == [0.5 * (name == word) for name in words]
    assert getattr(Draw(b"\xff" * 32), word) == 1 - 2.0**-53


# Statistics: a source gives the draw of a seed and a key, as the package does or broken on purpose.
