from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, NotRequired, get_args, get_origin, get_overloads, get_type_hints

import pytest

from toolkit.registers.columns import Column, Type
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study

PYTHON: dict[Type, Any] = {
    Type.STRING: str,
    Type.BOOL: bool,
    Type.FLOAT64: float,
    Type.DECIMAL: Decimal,
    Type.TIMESTAMP: datetime,
    Type.BOOLS: list[bool],
    Type.INT32S: list[int],
    Type.UINT64S: list[int],
    Type.FLOAT64S: list[float],
}


def _typed() -> dict[str, Any]:
    hints = [get_type_hints(overload) for overload in get_overloads(Study.rows)]
    return {
        get_args(hint["table"])[0]: get_args(hint["return"])[0]
        for hint in hints
        if get_origin(hint["table"]) is Literal
    }


def _of(column: Column) -> Any:
    value = PYTHON.get(column.type, int)
    value = value | None if column.nullable else value
    return NotRequired[value] if column.optional else value


@pytest.mark.parametrize("table", _typed())
def test_a_rows_type_is_that_of_its_tables_columns(table: str) -> None:
    written = get_type_hints(_typed()[table], include_extras=True)
    assert written == {column.name: _of(column) for column in TABLES[table].columns}
