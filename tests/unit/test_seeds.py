"""Derived seeds against their vectors; no two levels, rows or spellings of fields meet."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from scipy import stats

from tests.conftest import CHECKOUT
from toolkit import seeds
from toolkit.seeds import (
    LIMIT,
    Stream,
    derive,
    encode_field,
    evaluation_seed,
    row_seed,
    run_seed,
    slot_seed,
    world_seed,
)

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (CHECKOUT / "tests/vectors/draws.json").read_text(encoding="utf-8")
)
# Seeds stand as text in the vectors: they exceed what a JSON number holds everywhere.
WHOLE = {"seed", "run", "row", "schedule", "candidate", "sampling", "sample", "shared"}


@pytest.mark.parametrize("vector", VECTORS["seeds"], ids=lambda v: f"{v['function']}-{v['arguments']}")
def test_a_derived_seed_is_its_vector(vector: dict[str, Any]) -> None:
    arguments = {name: int(value) if name in WHOLE else value for name, value in vector["arguments"].items()}
    assert getattr(seeds, vector["function"])(**arguments) == int(vector["result"])


def test_every_level_of_derivation_has_a_vector() -> None:
    derivations = {name for name in vars(seeds) if name.endswith("_seed")}
    assert {vector["function"] for vector in VECTORS["seeds"]} == derivations


@pytest.mark.parametrize("vector", VECTORS["streams"], ids=lambda v: v["seed"])
def test_the_words_of_a_stream_are_their_vector(vector: dict[str, Any]) -> None:
    stream = Stream(int(vector["seed"]))
    assert [stream.word() for _ in vector["words"]] == list(map(int, vector["words"]))


def test_a_field_is_its_tag_its_length_and_its_payload() -> None:
    assert encode_field(258) == b"i\0\0\0\x08\0\0\0\0\0\0\x01\x02"
    assert encode_field("né") == b"s\0\0\0\x03n\xc3\xa9"


@pytest.mark.parametrize(
    ("composed", "decomposed"), [("é", "e\u0301"), ("Å", "\u212b"), ("가", "\u1100\u1161")]
)
def test_two_spellings_of_one_text_are_one_field(composed: str, decomposed: str) -> None:
    assert composed != decomposed
    assert encode_field(composed) == encode_field(decomposed)


@pytest.mark.parametrize("number", [-1, LIMIT])
@pytest.mark.parametrize(
    "use",
    [
        encode_field,
        lambda n: derive("row/v1", n),
        lambda n: run_seed("study", n),
        lambda n: row_seed(n, 0, 0),
        lambda n: row_seed(0, n, 0),
        lambda n: row_seed(0, 0, n),
        lambda n: slot_seed(n, 0),
        lambda n: slot_seed(0, n),
        lambda n: evaluation_seed("task", n),
        lambda n: world_seed("pool", n),
        Stream,
    ],
)
def test_a_number_out_of_range_overflows(use: Callable[[int], object], number: int) -> None:
    with pytest.raises(OverflowError):
        use(number)


@pytest.mark.parametrize(
    "seeds_of_levels",
    [
        (run_seed("x", 7), evaluation_seed("x", 7), world_seed("x", 7), derive("noise/v1", 7, "x")),
        (slot_seed(7, 1), derive("row/v1", 7, 1), derive("noise/v1", 7, 1)),
    ],
    ids=["text", "number"],
)
def test_equal_parts_at_different_levels_give_different_seeds(seeds_of_levels: tuple[int, ...]) -> None:
    assert len(set(seeds_of_levels)) == len(seeds_of_levels)


def test_no_two_neighbouring_rows_or_slots_share_a_seed() -> None:
    rows = [*range(20), *(row_seed(*at) for at in product(range(20), range(50), range(50)))]
    slots = [*range(6000), *(slot_seed(*at) for at in product(range(6000), range(8)))]
    assert [len(set(found)) - len(found) for found in (rows, slots)] == [0, 0]


@pytest.mark.parametrize("limit", [2, 7, 100])
def test_every_number_below_a_limit_is_equally_likely(limit: int) -> None:
    stream = Stream(11)
    drawn = Counter(stream.below(limit) for _ in range(20_000))
    assert stats.chisquare([drawn[number] for number in range(limit)]).pvalue > 1e-4


def test_the_largest_and_the_smallest_word_stay_in_range(monkeypatch: pytest.MonkeyPatch) -> None:
    for word, expected in ((0, 3), (LIMIT - 1, 9)):
        monkeypatch.setattr(Stream, "word", lambda _, word=word: word)
        assert Stream(0).between(3, 9) == expected


def test_both_ends_of_a_range_are_reached() -> None:
    stream = Stream(1)
    assert {stream.between(3, 5) for _ in range(100)} == {3, 4, 5}


def test_weights_are_kept() -> None:
    stream = Stream(2)
    drawn = [stream.weighted((("a", 1), ("b", 3), ("c", 6))) for _ in range(20_000)]
    counts = [drawn.count(item) for item in "abc"]
    assert stats.chisquare(counts, [2000, 6000, 12_000]).pvalue > 1e-4


REFUSED = {
    "must be positive": [lambda s, w=w: s.weighted([(each, each) for each in w]) for w in ((0,), (3, -1, 5))],
    "there is no": [
        lambda s: s.weighted(()),
        lambda s: s.below(0),
        lambda s: s.between(5, 3),
        lambda s: s.choice(""),
    ],
    "cannot draw 3 of 2 items": [lambda s: s.sample("ab", 3)],
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_cannot_be_drawn_is_refused(says: str) -> None:
    for draw in REFUSED[says]:
        with pytest.raises(ValueError, match=says):
            draw(Stream(2))


def test_every_order_of_a_shuffle_is_equally_likely() -> None:
    stream = Stream(4)
    orders = Counter(tuple(stream.shuffled("abcd")) for _ in range(12_000))
    assert len(orders) == 24
    assert stats.chisquare(list(orders.values())).pvalue > 1e-4


def test_a_sample_holds_distinct_items_and_leaves_the_source_alone() -> None:
    items = list(range(10))
    drawn = Stream(6).sample(items, 7)
    assert len(set(drawn)) == 7
    assert items == list(range(10))
