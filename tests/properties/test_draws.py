"""What must hold for every draw, every key and every rate."""

from itertools import pairwise
from typing import NamedTuple, get_args
from unicodedata import normalize

from hypothesis import assume, example, given
from hypothesis import strategies as st

from toolkit.noise.draws import GRADER, Draw, Schedule, group_seeds
from toolkit.noise.regimes import DEFAULT, HELD_OUT, OUTAGE_FREE, REGIMES, Mixture, Regime, kept, retry_after
from toolkit.noise.tools import APPLIES, Fault, Kind, Tool
from toolkit.seeds import LIMIT, Field, Stream, encode_field

seeds = st.integers(0, LIMIT - 1)
# Letters that compose, letters that look like tags, and the bytes that separate: what could run together.
texts = st.text(alphabet="abis01\0é\u0301\u1100\u1161🚀", max_size=6)
fields = st.one_of(st.integers(0, 3), seeds, texts)


class EventKey(NamedTuple):
    """A key, by the names of its parts."""

    tool: str
    resource: str
    repeat: int


keys = st.builds(EventKey, texts, texts, st.integers(0, 1000))
# Large whole numbers are mostly drawn small: as hundredths of the range, words name every type and strength.
words = st.one_of(
    st.integers(0, 99).map(lambda hundredth: hundredth * LIMIT // 100), st.sampled_from([0, LIMIT - 1])
)
draws = st.builds(lambda *four: Draw(b"".join(word.to_bytes(8, "big") for word in four)), *[words] * 4)
LOWEST, HIGHEST = Draw(bytes(32)), Draw(b"\xff" * 32)
kinds = st.sampled_from(get_args(Kind))
repeats = st.integers(0, 3)
mixtures = st.one_of(
    st.sampled_from([DEFAULT, OUTAGE_FREE, HELD_OUT]),
    st.dictionaries(st.sampled_from(get_args(Fault)), st.integers(1, 1000), min_size=1).map(Mixture),
)
rates = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)


def one_form(field: Field) -> Field:
    """Return a field in the form in which it counts: text in normal form C."""
    return normalize("NFC", field) if isinstance(field, str) else field


@given(seeds, keys, st.lists(st.one_of(keys, st.just(GRADER))))
def test_a_draw_hangs_on_seed_and_key_alone(seed: int, key: EventKey, before: list[tuple[str, ...]]) -> None:
    used = Schedule(seed)
    for earlier in before:
        _ = used.grader() if earlier == GRADER else used.draw(*earlier)
    assert used.draw(*key).digest == Schedule(seed).draw(*key).digest
    assert used.grader().digest == Schedule(seed).grader().digest


@given(seeds, keys, keys)
@example(42, EventKey("ab", "c", 0), EventKey("a", "bc", 0))
@example(42, EventKey("a\0", "b", 0), EventKey("a", "\0b", 0))
@example(42, EventKey("s", "", 0), EventKey("", "s", 0))
@example(42, EventKey("ab", "e\u0301", 0), EventKey("ab", "é", 0))
def test_two_keys_share_a_draw_only_if_they_are_one(seed: int, one: EventKey, other: EventKey) -> None:
    same = list(map(one_form, one)) == list(map(one_form, other))
    assert (Schedule(seed).draw(*one).digest == Schedule(seed).draw(*other).digest) == same


def read_back(message: bytes) -> list[Field]:
    """Return the fields of a message, read as the encoding is documented."""
    parts: list[Field] = []
    while message:
        tag, length = message[:1], int.from_bytes(message[1:5], "big")
        payload, message = message[5 : 5 + length], message[5 + length :]
        parts.append(int.from_bytes(payload, "big") if tag == b"i" else payload.decode())
    return parts


@given(st.lists(fields))
def test_fields_can_be_read_back_from_a_message(parts: list[Field]) -> None:
    assert read_back(b"".join(map(encode_field, parts))) == list(map(one_form, parts))


@given(draws)
def test_every_word_lies_in_the_unit_interval(draw: Draw) -> None:
    assert all(0 <= word < 1 for word in (draw.gate, draw.type, draw.magnitude))


@given(draws, kinds, repeats, mixtures, rates)
def test_a_fault_at_a_lower_rate_is_the_same_fault_at_a_higher(draw, kind, repeat, mixture, rate) -> None:
    low, high = (Regime("", "", p, mixture).fault(Tool("any", kind), repeat, draw) for p in rate)
    assert low in {None, high}


@given(draws, st.sampled_from(["read", "list", "write"]), repeats, mixtures)
def test_the_gate_alone_makes_a_fault(draw: Draw, kind: Kind, repeat: int, mixture: Mixture) -> None:
    assume(set(mixture.weights) & set(APPLIES[kind]))
    fault = Regime("", "", 0.25, mixture).fault(Tool("any", kind), repeat, draw)
    assert (fault is not None) == (draw.gate < 0.25)


@given(draws, words, kinds, mixtures)
def test_a_type_hangs_on_its_word_alone(draw: Draw, other: int, kind: Kind, mixture: Mixture) -> None:
    word = other.to_bytes(8, "big")
    changed = Draw(word + draw.digest[8:16] + word + word)
    assert mixture.pick(APPLIES[kind], changed) == mixture.pick(APPLIES[kind], draw)


@given(mixtures, st.sampled_from(["read", "list", "write"]))
def test_shares_are_the_weights_over_those_that_apply(mixture: Mixture, kind: Kind) -> None:
    weights = {fault: mixture.weights.get(fault, 0) for fault in APPLIES[kind]}
    total = sum(weights.values())
    for fault in get_args(Fault):
        expected = weights.get(fault, 0) / total if total else 0.0
        assert abs(mixture.share(kind, fault) - expected) < 1e-15


@given(mixtures, st.sampled_from(["read", "list", "write"]), draws)
def test_a_picked_type_has_a_weight_and_applies(mixture: Mixture, kind: Kind, draw: Draw) -> None:
    expected = set(mixture.weights) & set(APPLIES[kind]) or {None}
    assert mixture.pick(APPLIES[kind], draw) in expected


@given(draws, kinds, repeats)
@example(HIGHEST, "write", 0)
@example(LOWEST, "write", 1)
@example(LOWEST, "list", 0)
def test_the_challenge_faults_first_attempts_of_writes_alone(draw: Draw, kind: Kind, repeat: int) -> None:
    expected = "transient" if kind == "write" and repeat == 0 else None
    assert REGIMES["challenge"].fault(Tool("any", kind), repeat, draw) == expected


@given(draws, kinds, repeats)
def test_a_quiet_regime_never_faults(draw: Draw, kind: Kind, repeat: int) -> None:
    quiet = [regime for regime in REGIMES.values() if not regime.ceiling]
    assert [regime.fault(Tool("any", kind), repeat, draw) for regime in quiet] == [None] * 3


class Given(Schedule):
    """A schedule whose grader's draw is given."""

    __slots__ = ("_drawn",)

    def __init__(self, drawn: Draw) -> None:
        super().__init__(0)
        self._drawn = drawn

    def grader(self) -> Draw:
        return self._drawn


@given(draws, rates)
def test_what_flips_at_a_lower_rate_flips_at_a_higher(draw: Draw, rate: list[float]) -> None:
    low, high = (Regime("", "", flip_rate=q).flips(Given(draw)) for q in rate)
    assert low <= high


@given(draws)
def test_a_success_flips_where_the_grader_s_gate_is_below_the_rate(draw: Draw) -> None:
    assert REGIMES["flips_q010"].flips(Given(draw)) == (draw.gate < 0.10)


@given(draws)
@example(HIGHEST)
def test_a_rate_limit_lasts_one_to_five_seconds(draw: Draw) -> None:
    assert retry_after(draw) in {1, 2, 3, 4, 5}


@given(draws, st.integers(1, 2**53))
@example(HIGHEST, 2)
@example(HIGHEST, 2**53 - 1)
def test_a_cut_page_keeps_an_item_and_never_all_of_several(draw: Draw, items: int) -> None:
    assert 1 <= kept(draw, items) <= max(1, items - 1)


@given(draws, words, words, st.integers(1, 100))
def test_strength_does_not_hang_on_gate_or_type(draw: Draw, gate: int, kind: int, items: int) -> None:
    changed = Draw(gate.to_bytes(8, "big") + kind.to_bytes(8, "big") + draw.digest[16:])
    assert (retry_after(changed), kept(changed, items)) == (retry_after(draw), kept(draw, items))


@given(seeds, st.integers(1, 64))
def test_an_independent_group_has_a_seed_a_rollout_and_none_of_the_row(row: int, size: int) -> None:
    assert len({row, *group_seeds("independent", row, size)}) == size + 1


@given(seeds, st.lists(st.integers(), max_size=20))
def test_a_shuffle_keeps_every_item(seed: int, items: list[int]) -> None:
    assert sorted(Stream(seed).shuffled(items)) == sorted(items)


@given(seeds, st.lists(st.integers(1, 100), min_size=1, max_size=8))
def test_weighted_items_follow_the_same_word_in_order(seed: int, weights: list[int]) -> None:
    """The word's place among the cumulated weights is the item's."""
    drawn = Stream(seed).weighted(list(enumerate(weights)))
    word = Stream(seed).below(sum(weights))
    ends = [0, *(sum(weights[: n + 1]) for n in range(len(weights)))]
    low, high = list(pairwise(ends))[drawn]
    assert low <= word < high
