"""Verifying a study's registers: their bytes, their columns, their rows."""

from collections.abc import Callable

from toolkit.registers.manifest import check_nothing_else
from toolkit.registers.study import Study
from toolkit.registers.validation import check_rows


def verify_study(study: Study, progress: Callable[[str], None] = lambda _: None) -> dict[str, int]:
    """Check a study from its bytes to its meaning.

    1. Every file is the one the manifest names, and no other file lies beside them.
    2. Every table has the schema's columns, the manifest's row count and the manifest's row hash.
    3. Every row obeys the schema, and every reference between tables leads somewhere.
    """
    for name in study.manifest.files:  # 1
        study.prove(name)
    check_nothing_else(study.folder, study.manifest)
    tables = {}
    for table in study.tables:  # 2
        progress(table.name)
        tables[table.name] = study.arrow(table.name)
    check_rows(tables, {table.name: table for table in study.tables})  # 3
    return {name: table.num_rows for name, table in tables.items()}
