"""Registered rows played again, and what was changed in them noticed."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import Toolkit
from toolkit.errors import DamagedError, VerificationError
from toolkit.lab.play.rows import rows_of_run
from toolkit.lab.training.checkpoint import checkpoint_row, read_checkpoint
from toolkit.lab.verification.replay import Replayer, audit
from toolkit.registers.arrow import parquet_bytes, to_arrow
from toolkit.registers.manifest import FileEntry
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study
from toolkit.specification import Specification
from toolkit.structs import replace

RUN = "c4-independent-s1"


@pytest.fixture(scope="module")
def replayer(embedded: Study) -> Replayer:
    return Replayer(embedded, RUN)


def nothing(*_: object) -> None:
    pass


def changed(study: Study, folder: Path, table: str, change: Callable[[list[Any]], None]) -> Replayer:
    """Return a replayer of a run that has rows of one table changed, and every hash computed anew."""
    rows = rows_of_run(study, table, RUN)
    change(rows)
    content = parquet_bytes(table, to_arrow(TABLES[table], rows))
    for name in [name for name in study.manifest.files if RUN in name or name.startswith("runs")]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(study.folder / name, folder / name)
    name = f"{table}/{RUN}.parquet"
    (folder / name).write_bytes(content)
    entry = FileEntry(hashlib.sha256(content).hexdigest(), len(content), len(rows))
    files = {**study.manifest.files, name: entry}
    return Replayer(Study(folder, replace(study.manifest, files=files)), RUN)


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("episodes", slice(None, None, 400)),
        ("groups", slice(24 * 22 + 5, 24 * 22 + 6)),
        ("luck_share", slice(None, None, 60)),
        ("checkpoints", slice(2)),
    ],
)
def test_rows_come_out_as_registered(replayer: Replayer, table: str, rows: slice) -> None:
    for row in replayer.rows(table)[rows]:
        replayer.check(table, row)


def test_a_rollout_is_played_with_every_call(replayer: Replayer) -> None:
    episode = replayer.rollout(7, 2, 5)
    assert episode.trace is not None
    assert episode.schedule.seed == replayer.rows("groups")[24 * 6 + 2]["schedule_seeds"][5]


def nudged(row: dict[str, Any], first: float) -> dict[str, Any]:
    weights = read_checkpoint(row, RUN, len(row["parameters"]))
    return checkpoint_row(RUN, replace(weights, parameters=(first, *weights.parameters[1:])))


def more(rows: list[Any], row: int, column: str, *at: int, by: float = 1) -> None:
    (place, key) = (rows[row][column], at[0]) if at else (rows[row], column)
    place[key] += by


@pytest.mark.parametrize(
    ("table", "row", "change", "where"),
    [
        ("episodes", 0, lambda rows: more(rows, 0, "calls"), "calls"),
        ("groups", 3, lambda rows: more(rows, 3, "advantages", 0, by=1e-12), "advantages"),
        (
            "luck_share",
            9,
            lambda rows: rows[9]["true_successes"].insert(2, not rows[9]["true_successes"].pop(2)),
            "true_successes",
        ),
        ("luck_share", 0, lambda rows: [row.update(regime="faults_p010") for row in rows], "regime"),
        ("luck_share", 0, lambda rows: [row.update(pool="validation") for row in rows], "pool"),
        (
            "checkpoints",
            1,
            lambda rows: rows.insert(1, nudged(rows[1], rows.pop(1)["parameters"][0] + 1e-15)),
            "parameters",
        ),
    ],
)
def test_what_was_changed_in_a_row_is_noticed(embedded, tmp_path, table, row, change, where) -> None:
    forged = changed(embedded, tmp_path, table, change)
    with pytest.raises(VerificationError, match="came out otherwise") as error:
        forged.check(table, forged.rows(table)[row])
    assert error.value.where == where


@pytest.mark.parametrize(
    ("table", "change", "said"),
    [
        ("groups", lambda rows: more(rows, 3, "decisions"), "group 3 at step 1"),
        ("checkpoints", lambda rows: rows.insert(0, nudged(rows.pop(0), 9.0)), "the checkpoint at step 0"),
        ("checkpoints", lambda rows: more(rows, 0, "parameters", 0, by=1e-15), "not those that were written"),
    ],
)
def test_what_was_changed_on_the_way_to_a_rollout_is_noticed(embedded, tmp_path, table, change, said) -> None:
    with pytest.raises((VerificationError, DamagedError), match=said):
        changed(embedded, tmp_path, table, change).rollout(3, 0, 0)


def test_a_table_at_a_step_that_is_not_diagnosed_is_noticed(replayer: Replayer) -> None:
    row = {**replayer.rows("luck_share")[0], "step": 20}
    with pytest.raises(VerificationError, match="not registered"):
        replayer.check("luck_share", row)


def test_an_audit_draws_the_same_rows_for_the_same_seed_and_knows_how_many_there_are(
    embedded: Study, registered: dict[str, Specification]
) -> None:
    first, again = (audit(embedded, 3, 5, registered, nothing) for _ in range(2))
    assert first == again
    assert sum(first.sampled.values()) == 3
    tables = ("episodes", "groups", "luck_share", "checkpoints")
    files = [embedded.folder / f for t in tables for f in embedded.manifest.tables[t].files]
    assert first.rows == sum(pq.read_metadata(file).num_rows for file in files)


def test_a_run_of_another_specification_than_registered_is_noticed(embedded, registered) -> None:
    others = {name: replace(run, learning_rate="0.004") for name, run in registered.items()}
    with pytest.raises(VerificationError, match="the specification of") as error:
        audit(embedded, 1, 0, others, nothing)
    assert error.value.where == "learning_rate"
    assert error.value.remedy is not None
    assert error.value.remedy.endswith("to draw this row again: --sample 1 --seed 0")
    with pytest.raises(VerificationError, match="no run of the registered matrix"):
        audit(embedded, 1, 0, {}, nothing)


def test_the_command_draws_rows_that_nobody_can_foresee(toolkit: Toolkit) -> None:
    command = ("registers", "audit", "--study", "embedded", "--sample", 1, "--json")
    assert len({toolkit(*command).json()["seed"] for _ in range(2)}) == 2
