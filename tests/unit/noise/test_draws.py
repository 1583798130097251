"""The draw against its vectors, in Python and in Node, and against what random numbers must look like.

Every statistical test looks at 100,000 draws of fixed seeds, so that it gives the same answer every time,
and stands beside broken generators that the same function rejects.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

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


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("draws", {"digest": "00" * 32}),
        ("draws", {"gate": 0.25}),
        ("draws", {"type": 0.25}),
        ("draws", {"magnitude": 0.25}),
        ("draws", {"key": ["get_order", "O-10233", "0"]}),
        ("draws", {"seed": "43"}),
        ("seeds", {"result": "1"}),
        ("streams", {"words": ["0"]}),
        ("draws", None),
    ],
)
def test_node_ends_with_an_error_where_a_vector_is_wrong(tmp_path: Path, kind: str, wrong: Any) -> None:
    vectors = json.loads(VECTORS_FILE.read_text(encoding="utf-8"))
    if wrong is None:
        vectors[kind] = []
    else:
        vectors[kind][3].update(wrong)
    (tmp_path / "damaged.json").write_text(json.dumps(vectors), encoding="utf-8")
    done = in_node(tmp_path / "damaged.json")
    assert (done.returncode, done.stdout.count("\n")) == (1, 1)
    assert done.stdout.startswith("different: ")


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

Source = Callable[[int, str, str, int], Draw]
ENOUGH = 1e-4
HOPELESS = 1e-12


def package(seed: int, tool: str, resource: str, repeat: int) -> Draw:
    return Schedule(seed).draw(tool, resource, repeat)


def words(draws: Iterable[Draw]) -> np.ndarray:
    """Return the words of draws: gate, type, magnitude × draws."""
    rows = (word for draw in draws for word in (draw.gate, draw.type, draw.magnitude))
    return np.ascontiguousarray(np.fromiter(rows, float).reshape(-1, 3).T)


def lattice(source: Source, seeds: int, resources: int, repeats: int) -> np.ndarray:
    """Return the words of neighbouring seeds, orders and repeats: word × seed × order × repeat."""
    at = product(range(seeds), (f"O-{10_200 + n}" for n in range(resources)), range(repeats))
    draws = (source(seed, "get_order", order, repeat) for seed, order, repeat in at)
    return words(draws).reshape(3, seeds, resources, repeats)


def uniformity(sample: np.ndarray) -> float:
    """Return the smallest probability of a word's distribution and of its last byte's, were it uniform."""
    probabilities = []
    for word in sample.reshape(len(sample), -1):
        last_byte = (word * 2.0**53).astype(np.int64) & 255
        probabilities += [
            stats.kstest(word, "uniform").pvalue,
            stats.chisquare(np.bincount(last_byte, minlength=256)).pvalue,
        ]
    return float(min(probabilities))


def independence(one: np.ndarray, other: np.ndarray) -> float:
    """Return the probability of two words' common counts on a grid of 16 × 16, were they independent."""
    counts, _, _ = np.histogram2d(one.ravel(), other.ravel(), bins=16, range=((0, 1), (0, 1)))
    return float(stats.chi2_contingency(counts).pvalue)


def between_words(sample: np.ndarray) -> float:
    """Return the smallest probability of gate against type against magnitude, were they independent."""
    return min(independence(word, other) for word, other in combinations(sample, 2))


def shifted(word: np.ndarray, offset: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lattice's pairs of draws that lie an offset apart, as two arrays."""
    first = tuple(slice(max(0, -step), n - max(0, step)) for step, n in zip(offset, word.shape, strict=True))
    second = tuple(slice(max(0, step), n + min(0, step)) for step, n in zip(offset, word.shape, strict=True))
    return word[first], word[second]


def serial(sample: np.ndarray, offset: tuple[int, ...]) -> float:
    """Return the smallest probability of the correlation of draws an offset apart, were there none."""
    pairs = (shifted(word, offset) for word in sample)
    return float(min(stats.pearsonr(word.ravel(), other.ravel()).pvalue for word, other in pairs))


# Along each axis, and along the diagonals where parts that are added to one another would meet again.
OFFSETS = {
    "along repeats": (0, 0, 1),
    "two repeats apart": (0, 0, 2),
    "across keys": (0, 1, 0),
    "across seeds": (1, 0, 0),
    "a seed up and a repeat down": (1, 0, -1),
    "a seed up and a key down": (1, -1, 0),
    "a key up and a repeat down": (0, 1, -1),
    "all up": (1, 1, 1),
}


@pytest.fixture(scope="module")
def sample() -> np.ndarray:
    return lattice(package, seeds=64, resources=25, repeats=64)


def test_every_word_is_uniform(sample: np.ndarray) -> None:
    assert uniformity(sample) > ENOUGH


def test_gate_type_and_magnitude_are_independent(sample: np.ndarray) -> None:
    assert between_words(sample) > ENOUGH


@pytest.mark.parametrize("offset", OFFSETS.values(), ids=OFFSETS)
def test_neighbouring_draws_are_uncorrelated(sample: np.ndarray, offset: tuple[int, ...]) -> None:
    assert serial(sample, offset) > ENOUGH


def test_no_draw_comes_twice(sample: np.ndarray) -> None:
    assert len(np.unique(sample[0])) == sample[0].size


def gate_from_the_type(seed: int, tool: str, resource: str, repeat: int) -> Draw:
    digest = package(seed, tool, resource, repeat).digest
    return Draw(digest[8:16] + digest[8:])


def repeat_ignored(seed: int, tool: str, resource: str, _repeat: int) -> Draw:
    return package(seed, tool, resource, 0)


def seed_ignored(_seed: int, tool: str, resource: str, repeat: int) -> Draw:
    return package(0, tool, resource, repeat)


def seed_added_to_the_repeat(seed: int, tool: str, resource: str, repeat: int) -> Draw:
    return package(0, tool, resource, seed + repeat)


def everything_added(seed: int, tool: str, resource: str, repeat: int) -> Draw:
    """Return draws that differ between neighbours by a fixed small amount: a counter without a hash."""
    word = (seed + repeat + int(resource[2:])) * (LIMIT // 100) % LIMIT
    return Draw(word.to_bytes(8, "big") + package(seed, tool, resource, repeat).digest[8:])


def skewed_gate(seed: int, tool: str, resource: str, repeat: int) -> Draw:
    digest = package(seed, tool, resource, repeat).digest
    larger = max(int.from_bytes(digest[:8], "big"), int.from_bytes(digest[24:], "big"))
    return Draw(larger.to_bytes(8, "big") + digest[8:])


@cache
def small(source: Source) -> np.ndarray:
    """Return a fifth of the draws: what is broken shows in fewer."""
    return lattice(source, seeds=32, resources=20, repeats=32)


@pytest.mark.parametrize("broken", [skewed_gate, everything_added])
def test_the_test_of_uniformity_rejects_a_broken_generator(broken: Source) -> None:
    assert uniformity(small(broken)) < HOPELESS


def test_the_test_of_independence_rejects_a_broken_generator() -> None:
    assert between_words(small(gate_from_the_type)) < HOPELESS


@pytest.mark.parametrize(
    ("broken", "offset"),
    [
        (repeat_ignored, "along repeats"),
        (seed_ignored, "across seeds"),
        (seed_added_to_the_repeat, "a seed up and a repeat down"),
        (everything_added, "all up"),
    ],
)
def test_the_test_of_neighbours_rejects_a_broken_generator(broken: Source, offset: str) -> None:
    assert serial(small(broken), OFFSETS[offset]) < HOPELESS


def against_the_grader(calls: np.ndarray, graders: np.ndarray) -> float:
    """Return the smallest probability of any grader's word against any call's, were they independent."""
    return min(independence(call, grader) for call, grader in product(calls, graders))


def test_the_grader_draws_independently_of_the_calls() -> None:
    calls = words(package(seed, "get_order", "O-10233", 0) for seed in range(25_000))
    graders = words(Schedule(seed).grader() for seed in range(25_000))
    assert against_the_grader(calls, graders) > ENOUGH
    assert against_the_grader(calls, calls) < HOPELESS
