"""A pilot is no evidence: what was seen before the freeze stays out, or is said of every verdict."""

import csv
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import run
from toolkit.drafting import pilot
from toolkit.drafting.pilot import MOST_ROWS
from toolkit.errors import DamagedError
from toolkit.places import HOME_VARIABLE
from toolkit.prereg.record import PILOTS

TASKS = 12


def episodes(seeds: tuple[int, ...] = (10, 11), *, worse: int = 3) -> list[dict[str, Any]]:
    """Two arms, the second of which fails in some more tasks; each task once a seed."""
    return [
        {"arm": arm, "seed": seed, "task": f"t{task}", "success": int((task + seed) % 4 > 0 and task >= lost)}
        for arm, lost in (("new", 0), ("old", worse))
        for seed in seeds
        for task in range(TASKS)
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def fill_in(project: Path, *changes: tuple[str, str]) -> None:
    for path in (*project.glob("prereg/mine/*.*"), project / "cards/mine.md"):
        text = path.read_text(encoding="utf-8").replace("FILL IN", "said")
        for old, new in changes:
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study drafted from a pilot, and filled in."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pilot.csv", episodes())
    done = run("new-study", "mine", "--table", "pilot.csv", "--baseline", "old", "--into", ".")
    assert done.code == 0, done.err
    fill_in(tmp_path)
    return tmp_path


def imported(project: Path, rows: list[dict[str, Any]], *options: str) -> Any:
    return run("registers", "import", "mine", write(project / "log.csv", rows), *options)


SEEN = "they were seen before the rules were frozen"


def test_the_pilot_is_refused_as_evidence_and_the_study_is_not(project: Path) -> None:
    fill_in(project, ("seeds = [10, 11]", "seeds = [10, 11, 12, 13]"))
    assert run("freeze", "mine", "--demonstration").code == 0
    assert PILOTS in (project / "prereg/mine/FROZEN.sha256").read_text(encoding="utf-8")
    new = episodes((12, 13))
    for rows in (
        episodes(),
        episodes()[::-1],
        episodes()[:5] + new,  # a part of a run of the pilot, beside others
        episodes() + new,
        [*episodes(), episodes()[0] | {"task": "t99"}],  # a run of the pilot, and a task more
    ):
        imported(project, rows).refused(2, SEEN, "--replace")
    assert not (project / "registers/mine").exists()
    assert imported(project, new).code == 0
    (decision,) = run("decide", "--study", "mine", "H1", "--json").json()
    assert "contains_pilot_rows" not in decision


def test_with_a_reason_it_is_taken_and_every_verdict_says_so(project: Path) -> None:
    assert run("freeze", "mine", "--demonstration").code == 0
    done = imported(project, episodes(), "--replace", "there was money for one")
    assert done.code == 0, done.err
    (decision,) = run("decide", "--study", "mine", "H1", "--json").json()
    assert decision["contains_pilot_rows"] == "there was money for one"
    assert "CONTAINS PILOT ROWS: there was money for one" in run("decide", "--study", "mine", "H1").out
    assert run("verify", "mine").code in (0, 3)
    again = run("registers", "import", "mine", "log.csv", "--check")
    assert again.code == 0, again.err


def test_every_pilot_was_seen_and_not_the_last_alone(project: Path) -> None:
    write(project / "other.csv", episodes((10, 21), worse=4))
    assert run("rehearse", "mine", "other.csv", "--simulations", "0").code == 0
    assert run("freeze", "mine", "--demonstration").code == 0
    for rows in (episodes((11, 30)), episodes((21, 22), worse=4)):
        imported(project, rows).refused(2, SEEN)


def test_a_log_that_differs_from_the_pilot_in_what_came_of_it_is_another(project: Path) -> None:
    assert run("freeze", "mine", "--demonstration").code == 0
    assert imported(project, episodes(worse=5)[TASKS * 2 :] + episodes((20, 21))[: TASKS * 2]).code == 0


def test_what_has_no_verdict_when_rehearsed_is_not_frozen(project: Path) -> None:
    half = write(
        project / "half.csv", [row | {"success": ""} if row["task"] < "t3" else row for row in episodes()]
    )
    done = run("rehearse", "mine", half, "--simulations", "0", "--json")
    assert done.code == 3
    rehearsed = done.json()
    assert any("H1 has no verdict on the pilot" in problem for problem in rehearsed["problems"])
    run("freeze", "mine", "--demonstration").refused(2, "had no verdict on the pilot", "H1")
    assert run("rehearse", "mine", "pilot.csv", "--simulations", "0").code == 0
    assert run("freeze", "mine", "--demonstration").code == 0
    before = (project / "prereg/mine" / PILOTS).read_bytes()
    assert run("rehearse", "mine", half, "--simulations", "0").code == 3
    assert (project / "prereg/mine" / PILOTS).read_bytes() == before, "what is frozen stays"


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
