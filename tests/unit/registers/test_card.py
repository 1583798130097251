"""The card's generated parts come from the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.registers.card import dataset_card, table_text
from toolkit.registers.schema import TABLES

if TYPE_CHECKING:
    from toolkit.registers.study import Study


def test_every_column_is_documented_in_the_shipped_card(published: Study) -> None:
    card = (published.folder / "README.md").read_text(encoding="utf-8")
    for table in published.tables:
        assert table_text(table, published.manifest.tables[table.name].rows) in card
        for column in table.columns:
            assert f"| `{column.name}` |" in card


def test_no_mark_is_left_in_a_card() -> None:
    card = dataset_card(
        "{{configs}} {{dataset_info}} {{tables}} {{schema_version}}", dict.fromkeys(TABLES, 1)
    )
    assert "{{" not in card


def test_a_list_is_declared_as_datasets_names_it() -> None:
    card = dataset_card("{{dataset_info}}", {"groups": 1})
    assert "  - name: schedule_seeds\n    list: uint64\n" in card


def test_the_type_of_a_list_is_no_markup() -> None:
    assert "| `advantages` | `list<double>` |" in table_text(TABLES["groups"])


def test_exactly_one_configuration_is_the_default() -> None:
    assert dataset_card("{{configs}}", dict.fromkeys(TABLES, 1)).count("default: true") == 1


def test_every_table_key_and_reference_names_columns() -> None:
    for table in TABLES.values():
        assert all(table.column(name) for name in table.key), table.name
        for parent in table.parents:
            for name in (*parent.columns, *parent.same):
                assert table.column(name)
                assert TABLES[parent.table].column(name)
        for total, parts in table.sums:
            assert all(table.column(name) for name in (total, *parts))
        for column in table.columns:
            assert all(table.column(name) for name in column.at_most)
            assert column.meaning.endswith(".")
