"""What arguments are read as: unambiguous values are coerced, everything else is refused with a message."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.lab.backoffice.parameters import CODES, Parameter, Refusal, read_arguments
from toolkit.lab.backoffice.tools import TOOLS

POSTAL_CODE = Parameter("postal_code", "string", "", max_length=20)
QUANTITY = Parameter("quantity", "integer", "", minimum=1, maximum=100)
ORDER = Parameter("order_id", "string", "", max_length=30, identifier=True)
SERVICE = Parameter("service", "string", "", choices=("standard", "express"))
NOTE = Parameter("note", "string", "", "", max_length=50)


@pytest.mark.parametrize(
    ("parameter", "value", "read"),
    [
        (POSTAL_CODE, 94107, "94107"),
        (POSTAL_CODE, "04109", "04109"),
        (POSTAL_CODE, " LS1 4DY ", "LS1 4DY"),
        (POSTAL_CODE, "a\nb", "a b"),
        (POSTAL_CODE, "e\u0301", "é"),
        (QUANTITY, 3, 3),
        (QUANTITY, "3", 3),
        (QUANTITY, " 3 ", 3),
        (QUANTITY, "+3", 3),
        (QUANTITY, 3.0, 3),
        (ORDER, " o-10233 ", "O-10233"),
        (ORDER, 10233, "10233"),
        (SERVICE, "Express", "express"),
        (NOTE, "", ""),
        (NOTE, "x" * 50, "x" * 50),
        (NOTE, "a\u200db\u00adc", "a\u200db\u00adc"),
        (QUANTITY, "000000000000100", 100),
    ],
)
def test_an_unambiguous_value_is_read(parameter: Parameter, value: Any, read: Any) -> None:
    got = parameter.read(value)
    assert (got, type(got)) == (read, type(read))


REFUSED: dict[Parameter, list[Any]] = {
    POSTAL_CODE: [94107.0, True, ["94107"], {"code": 1}, "", "   ", "9" * 21, 10**400, "\ud800", "a\x00b"],
    QUANTITY: [0, -2, "-2", 101, 10**400, 2.5, "2.0", "two", "0" * 15 + "1", "٣", True, [3], 1e300, math.nan],
    SERVICE: ["drone", ""],
}


@pytest.mark.parametrize(("parameter", "value"), [(p, value) for p in REFUSED for value in REFUSED[p]])
def test_what_could_be_meant_otherwise_is_refused(parameter: Parameter, value: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        parameter.read(value)
    error = refusal.value.answer()["error"]
    assert (error["code"], error["parameter"]) == ("invalid_arguments", parameter.name)
    assert len(error["message"]) < 200
    assert error["message"].isprintable()


def test_a_number_too_long_to_print_is_refused() -> None:
    with pytest.raises(Refusal, match="many digits"):
        POSTAL_CODE.read(10**5000)


def test_true_is_not_one_even_after_one_was_read() -> None:
    assert QUANTITY.read(1) == 1
    with pytest.raises(Refusal):
        QUANTITY.read(True)


NOT_OURS = [
    None,
    [],
    "O-1",
    3,
    {},
    {"order_id": None},
    {"order_id": "O", "reson": "x"},
    {1: 2, "order_id": "O"},
]


@pytest.mark.parametrize("arguments", NOT_OURS)
def test_arguments_that_are_no_object_or_not_the_tools_are_refused(arguments: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        read_arguments((ORDER,), arguments)
    assert refusal.value.code == "invalid_arguments"


def test_a_default_fills_in() -> None:
    for given_note in ({}, {"note": None}):
        read = read_arguments((ORDER, NOTE), {"order_id": "O-1", **given_note})
        assert read == {"order_id": "O-1", "note": ""}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.characters(categories=("Cs",)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(list(TOOLS.values())), st.data())
def test_any_value_is_read_or_refused(tool: Any, data: st.DataObject) -> None:
    names = st.sampled_from([p.name for p in tool.parameters]) | st.text(max_size=5)
    arguments = data.draw(st.dictionaries(names, ANYTHING, max_size=5))
    try:
        read = read_arguments(tool.parameters, arguments)
    except Refusal as refusal:
        assert refusal.code in CODES
        refusal.message.encode()
    else:
        assert list(read) == [p.name for p in tool.parameters]
        assert all(type(read[p.name]) is (int if p.type == "integer" else str) for p in tool.parameters)
        # What was read once is read as itself.
        assert read_arguments(tool.parameters, read) == read
