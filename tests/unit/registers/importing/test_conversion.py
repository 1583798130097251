"""A cell is converted exactly, or refused with its row."""

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

from toolkit.errors import DamagedError
from toolkit.registers.columns import Column, Type
from toolkit.registers.importing.source import ROW, converted

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
GOOD = {
    "a_number_in_text": (Type.INT16, ["7", " 8 ", "-9"], [7, 8, -9]),
    "a_number_with_a_gap_elsewhere": (Type.INT16, ["3.0", "4.000"], [3, 4]),
    "numbers_of_parquet": (Type.INT16, [1.0, 2.0], [1, 2]),
    "the_largest_seed": (Type.UINT64, ["18446744073709551615"], [2**64 - 1]),
    "truths_in_words": (Type.BOOL, ["True", "FALSE", " true"], [True, False, True]),
    "truths_in_numbers": (Type.BOOL, [1, 0], [True, False]),
    "truths_in_fractions": (Type.BOOL, [1.0, 0.0], [True, False]),
    "truths_of_a_survey": (Type.BOOL, ["yes", "No"], [True, False]),
    "truths": (Type.BOOL, [True, False], [True, False]),
    "a_decimal": (Type.DECIMAL, ["0.25", "999.999999"], [Decimal("0.250000"), Decimal("999.999999")]),
    "a_double": (Type.FLOAT64, ["1e-3", "2"], [0.001, 2.0]),
    "a_time_elsewhere": (Type.TIMESTAMP, ["2026-01-31T14:00:00+02:00"], [NOON]),
    "a_time_in_utc": (Type.TIMESTAMP, ["2026-01-31T12:00:00Z"], [NOON]),
    "a_time_of_parquet": (Type.TIMESTAMP, [NOON], [NOON]),
    "text_of_a_number": (Type.STRING, [17], ["17"]),
}
BAD = {
    "a_fraction": (Type.INT16, "1.5"),
    "too_large": (Type.INT16, "32768"),
    "too_small": (Type.INT16, "-32769"),
    "a_word_for_a_number": (Type.INT16, "seven"),
    "an_underscore": (Type.INT16, "1_000"),
    "a_negative_seed": (Type.UINT64, "-1"),
    "a_seed_beyond_64_bits": (Type.UINT64, "18446744073709551616"),
    "a_maybe": (Type.BOOL, "maybe"),
    "a_two": (Type.BOOL, "2"),
    "half_a_success": (Type.BOOL, "0.5"),
    "seven_digits": (Type.DECIMAL, "0.1234567"),
    "a_thousand": (Type.DECIMAL, "1000"),
    "an_exponent": (Type.DECIMAL, "1e-1"),
    "not_a_number": (Type.FLOAT64, "nan"),
    "infinity": (Type.FLOAT64, "inf"),
    "a_time_without_zone": (Type.TIMESTAMP, "2026-01-31T12:00:00"),
    "a_day_that_is_none": (Type.TIMESTAMP, "2026-02-31T12:00:00Z"),
    "a_time_in_words": (Type.TIMESTAMP, "noon"),
    "a_day_whose_year_looks_like_a_zone": (Type.TIMESTAMP, "12-11-2026"),
    "a_day_without_a_clock": (Type.TIMESTAMP, "2026-01-31+02:00"),
}


def cells(values: list[object]) -> pl.DataFrame:
    return pl.DataFrame({"theirs": values}).with_row_index(ROW, offset=1)


@pytest.mark.parametrize("case", GOOD)
def test_a_value_is_converted_exactly(case: str) -> None:
    kind, given, expected = GOOD[case]
    values = converted(cells(list(given)), Column("ours", "", kind), "theirs", {})
    assert values.to_list() == expected
    assert values.name == "ours"


@pytest.mark.parametrize("case", BAD)
def test_a_value_of_another_sort_is_refused_with_its_row(case: str) -> None:
    kind, wrong = BAD[case]
    good = str(GOOD[next(name for name, (k, _, _) in GOOD.items() if k is kind)][1][0])
    with pytest.raises(DamagedError, match="cannot have") as raised:
        converted(cells([good, wrong, good, wrong]), Column("ours", "", kind), "theirs", {})
    assert raised.value.found == f"{wrong!r} in row 2, and in 1 more"


def test_a_gap_is_refused_where_a_value_is_needed() -> None:
    with pytest.raises(DamagedError, match="has no value for ours") as raised:
        converted(cells(["1", None]), Column("ours", "", Type.INT16), "theirs", {})
    assert raised.value.found == "nothing in row 2"
    column = Column("ours", "", Type.INT16, nullable=True)
    assert converted(cells(["1", None]), column, "theirs", {}).to_list() == [1, None]


def test_words_are_translated_before_they_are_read() -> None:
    words = {"won": "true", "lost": "false"}
    values = converted(cells(["won", "lost", "true"]), Column("ours", "", Type.BOOL), "theirs", words)
    assert values.to_list() == [True, False, True]
