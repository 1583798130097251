"""A pilot is no evidence: what was seen before the freeze stays out, or is said of every verdict."""

from pathlib import Path

import polars as pl
import pytest

from toolkit.drafting import pilot
from toolkit.drafting.pilot import MOST_ROWS
from toolkit.errors import DamagedError
from toolkit.prereg.record import PILOTS


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"seen": 1, "rules": "", "undecided": []}', '{"seen": {"a": 1}}']
)
def test_a_record_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / PILOTS).write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError, match="record of pilots"):
        pilot.read_pilots(tmp_path / PILOTS)


def test_of_long_runs_a_part_is_kept_and_tells_them() -> None:
    long = [frozenset(f"{n:016x}" for n in range(start, start + 3 * MOST_ROWS, 3)) for start in (0, 1)]
    kept = [frozenset(sorted(rows)[:MOST_ROWS]) for rows in long]
    assert pilot.is_seen(kept[0], kept[0])
    assert not pilot.is_seen(kept[0], kept[1])
    more = frozenset(sorted({*long[0], *long[1]})[:MOST_ROWS])
    assert pilot.is_seen(more, kept[0])


def test_how_often_a_task_succeeded_tells_a_run() -> None:
    def played(*outcomes: int) -> frozenset[str]:
        rows = [
            {"condition": "main", "arm": "a", "seed": 0, "task": "t", "true_success": bool(one)}
            for one in outcomes
        ]
        (kept,) = pilot.rows_of_runs(pl.DataFrame(rows)).values()
        return kept

    assert pilot.is_seen(played(1, 0, 0), played(0, 1, 0))
    assert not pilot.is_seen(played(1, 0, 0), played(1, 1, 0))
