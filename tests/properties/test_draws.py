"""What must hold for every draw, key, rate and group of rollouts."""

import tempfile
from pathlib import Path
from typing import get_args
from unicodedata import normalize

from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.noise.draws import DESIGNS, Draw, group_seeds
from toolkit.noise.regimes import DEFAULT, HELD_OUT, OUTAGE_FREE, REGIMES, Mixture, Regime, kept
from toolkit.noise.tools import Fault, Kind, Tool
from toolkit.noise.trainers.groups import Groups, read, verify
from toolkit.noise.trainers.tools import tool
from toolkit.seeds import LIMIT, Field, encode_field

seeds = st.integers(0, LIMIT - 1)
# Letters that compose, letters that look like tags, and the bytes that separate: what could run together.
texts = st.text(alphabet="abis01\0é\u0301\u1100\u1161🚀", max_size=6)
fields = st.one_of(st.integers(0, 3), seeds, texts)


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


@given(draws, kinds, repeats, mixtures, rates)
def test_a_fault_at_a_lower_rate_is_the_same_fault_at_a_higher(draw, kind, repeat, mixture, rate) -> None:
    low, high = (Regime("", "", p, mixture).fault(Tool("any", kind), repeat, draw) for p in rate)
    assert low in {None, high}


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


@given(draws, st.integers(1, 2**53))
@example(HIGHEST, 2)
@example(HIGHEST, 2**53 - 1)
def test_a_cut_page_keeps_an_item_and_never_all_of_several(draw: Draw, items: int) -> None:
    assert 1 <= kept(draw, items) <= max(1, items - 1)


@given(seeds, st.integers(1, 64))
def test_an_independent_group_has_a_seed_a_rollout_and_none_of_the_row(row: int, size: int) -> None:
    assert len({row, *group_seeds("independent", row, size)}) == size + 1


SEEDS = st.integers(0, LIMIT - 1)


class Files:
    """A world of texts."""

    @tool("read", "path")
    def show(self, path: str) -> str:
        """Show a file."""
        return path

    @tool("write", "path")
    def put(self, path: str) -> str:
        """Write a file."""
        return path


@given(design=st.sampled_from(DESIGNS), seed=SEEDS, size=st.integers(1, 5), data=st.data())
def test_rollouts_meet_and_leave_the_same_in_any_order(design, seed, size, data) -> None:
    rollouts = [(step, task, slot) for step in (1, 2) for task in "ab" for slot in range(size)]
    calls = [(name, path) for name in ("show", "put") for path in "xyz"]
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2):
            record = Path(folder) / f"{number}.jsonl"
            groups = Groups(design, "faults_p025_outage_free", seed, size, record)
            fates = {}
            for place in data.draw(st.permutations(rollouts)):
                rollout = groups.rollout(*place)
                files = rollout.noisy(Files())
                for name, path in calls:
                    getattr(files, name)(path)
                fates[place] = [call.fault for call in files.session.calls]
                rollout.observed(float(None in fates[place]))
            assert verify(record).rollouts == len(rollouts)
            seen.append((fates, sorted(map(repr, read(record)))))
    assert seen[0] == seen[1]
