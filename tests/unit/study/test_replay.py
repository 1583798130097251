"""Registered rows played again, and what was changed in them noticed."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import CHECKOUT, Result
from toolkit import api
from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.places import Home
from toolkit.registers.arrow import parquet_bytes, to_arrow
from toolkit.registers.manifest import FileEntry, Manifest
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study, open_study
from toolkit.study.check.audit import audit
from toolkit.study.check.replay import Replayer
from toolkit.study.play.rows import rows_of_run
from toolkit.training.checkpoint import checkpoint_row, read_checkpoint
from toolkit.training.specification import Specification

RUN = "c4-independent-s1"
KEPT = ("runs", "episodes", "groups", "luck_share", "checkpoints")


@pytest.fixture(scope="module")
def embedded() -> Study:
    return open_study(CHECKOUT / "registers" / "embedded")


@pytest.fixture(scope="module")
def registered(embedded: Study) -> dict[str, Specification]:
    return api.registered_runs(embedded, Home(CHECKOUT))


@pytest.fixture(scope="module")
def replayer(embedded: Study) -> Replayer:
    return Replayer(embedded, RUN)


def changed(study: Study, folder: Path, table: str, change: Callable[[list[dict[str, Any]]], None]) -> Study:
    """Copy a run's files, with rows of one changed and every hash computed anew."""
    manifest = study.manifest
    files = {f"{name}/{RUN}.parquet" for name in KEPT[1:]} | set(manifest.tables["runs"].files)
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(study.folder / name, folder / name)
    rows = rows_of_run(study, table, RUN)
    change(rows)
    content = parquet_bytes(table, to_arrow(TABLES[table], rows))
    (folder / f"{table}/{RUN}.parquet").write_bytes(content)
    entries = {**manifest.files}
    entries[f"{table}/{RUN}.parquet"] = FileEntry(
        hashlib.sha256(content).hexdigest(), len(content), len(rows)
    )
    tables = {
        name: type(entry)(
            entry.rows, entry.row_sha256, entry.columns, tuple(f for f in entry.files if f in files)
        )
        for name, entry in manifest.tables.items()
        if name in KEPT
    }
    return Study(folder, Manifest(**{**vars(manifest), "tables": tables, "files": entries}))


def test_an_evaluation_comes_out_as_registered(replayer: Replayer) -> None:
    for row in replayer.rows("episodes")[::400]:
        replayer.check("episodes", row)


def test_a_training_group_comes_out_as_registered(replayer: Replayer) -> None:
    replayer.check("groups", replayer.rows("groups")[24 * 22 + 5])


def test_a_row_of_a_luck_share_table_comes_out_as_registered(replayer: Replayer) -> None:
    for row in replayer.rows("luck_share")[::60]:
        replayer.check("luck_share", row)


def test_a_rollout_is_played_with_every_call(replayer: Replayer) -> None:
    episode = replayer.rollout(7, 2, 5)
    assert episode.trace is not None
    assert episode.schedule.seed == replayer.rows("groups")[24 * 6 + 2]["schedule_seeds"][5]


@pytest.mark.parametrize("place", [(0, 0, 0), (101, 0, 0), (1, 24, 0), (1, 0, 8)])
def test_a_rollout_that_is_none_is_refused(replayer: Replayer, place: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError):
        replayer.rollout(*place)


def test_a_changed_outcome_is_noticed(embedded: Study, tmp_path: Path) -> None:
    def flip(rows: list[dict[str, Any]]) -> None:
        rows[0]["calls"] += 1

    forged = Replayer(changed(embedded, tmp_path, "episodes", flip), RUN)
    with pytest.raises(VerificationError, match="came out otherwise") as error:
        forged.check("episodes", forged.rows("episodes")[0])
    assert error.value.where == "calls"


def test_a_changed_advantage_is_noticed(embedded: Study, tmp_path: Path) -> None:
    def shift(rows: list[dict[str, Any]]) -> None:
        rows[3]["advantages"][0] += 1e-12

    forged = Replayer(changed(embedded, tmp_path, "groups", shift), RUN)
    with pytest.raises(VerificationError, match="group 3 at step 1"):
        forged.check("groups", forged.rows("groups")[3])


def test_a_changed_group_on_the_way_is_noticed(embedded: Study, tmp_path: Path) -> None:
    def shift(rows: list[dict[str, Any]]) -> None:
        rows[3]["decisions"] += 1

    forged = Replayer(changed(embedded, tmp_path, "groups", shift), RUN)
    with pytest.raises(VerificationError, match="group 3 at step 1"):
        forged.rollout(3, 0, 0)


def test_a_changed_table_is_noticed(embedded: Study, tmp_path: Path) -> None:
    def flip(rows: list[dict[str, Any]]) -> None:
        rows[9]["true_successes"][2] ^= True

    forged = Replayer(changed(embedded, tmp_path, "luck_share", flip), RUN)
    with pytest.raises(VerificationError) as error:
        forged.check("luck_share", forged.rows("luck_share")[9])
    assert error.value.where == "true_successes"


def test_a_checkpoint_that_training_does_not_give_is_noticed(embedded: Study, tmp_path: Path) -> None:
    def nudge(rows: list[dict[str, Any]]) -> None:
        weights = read_checkpoint(rows[1], RUN, len(rows[1]["parameters"]))
        nudged = (weights.parameters[0] + 1e-15, *weights.parameters[1:])
        rows[1] = checkpoint_row(RUN, replace(weights, parameters=nudged))

    forged = Replayer(changed(embedded, tmp_path, "checkpoints", nudge), RUN)
    with pytest.raises(VerificationError, match="the checkpoint at step 20"):
        forged.check("checkpoints", forged.rows("checkpoints")[1])


def test_a_start_that_is_not_the_untrained_policys_is_noticed(embedded: Study, tmp_path: Path) -> None:
    def nudge(rows: list[dict[str, Any]]) -> None:
        weights = read_checkpoint(rows[0], RUN, len(rows[0]["parameters"]))
        rows[0] = checkpoint_row(RUN, replace(weights, parameters=(9.0, *weights.parameters[1:])))

    forged = Replayer(changed(embedded, tmp_path, "checkpoints", nudge), RUN)
    with pytest.raises(VerificationError, match="the checkpoint at step 0"):
        forged.rollout(1, 0, 0)


def test_every_checkpoint_is_what_training_gives(replayer: Replayer) -> None:
    for row in replayer.rows("checkpoints")[:3]:
        replayer.check("checkpoints", row)


@pytest.mark.parametrize(("column", "value"), [("regime", "faults_p010"), ("pool", "validation")])
def test_a_table_of_another_regime_or_pool_is_noticed(
    embedded: Study, tmp_path: Path, column: str, value: str
) -> None:
    def rename(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row[column] = value

    forged = Replayer(changed(embedded, tmp_path, "luck_share", rename), RUN)
    with pytest.raises(VerificationError) as error:
        forged.check("luck_share", forged.rows("luck_share")[0])
    assert error.value.where == column


def test_a_table_at_a_step_that_is_not_diagnosed_is_noticed(replayer: Replayer) -> None:
    row = {**replayer.rows("luck_share")[0], "step": 20}
    with pytest.raises(VerificationError, match="not registered"):
        replayer.check("luck_share", row)


def test_a_changed_checkpoint_is_noticed(embedded: Study, tmp_path: Path) -> None:
    def nudge(rows: list[dict[str, Any]]) -> None:
        rows[1]["parameters"][0] += 1e-15

    forged = Replayer(changed(embedded, tmp_path, "checkpoints", nudge), RUN)
    with pytest.raises(Exception, match="not those that were written"):
        forged.rollout(21, 0, 0)


def test_an_audit_draws_the_same_rows_for_the_same_seed(
    embedded: Study, registered: dict[str, Specification]
) -> None:
    first, again = (audit(embedded, 3, 5, registered, lambda *_: None) for _ in range(2))
    assert first == again
    assert sum(first.sampled.values()) == 3


def test_an_audit_knows_how_many_rows_there_are(
    embedded: Study, registered: dict[str, Specification]
) -> None:
    tables = ("episodes", "groups", "luck_share", "checkpoints")
    files = [embedded.folder / f for t in tables for f in embedded.manifest.tables[t].files]
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    assert audit(embedded, 1, 0, registered, lambda *_: None).rows == rows


def test_an_audit_of_summary_figures_is_incomplete(published: Study) -> None:
    with pytest.raises(IncompleteError, match="no rows that can be played"):
        audit(published, 1, 0, {}, lambda *_: None)


def test_a_run_of_another_specification_than_registered_is_noticed(
    embedded: Study, registered: dict[str, Specification]
) -> None:
    others = {name: replace(one, learning_rate="0.004") for name, one in registered.items()}
    with pytest.raises(VerificationError, match="the specification of") as error:
        audit(embedded, 1, 0, others, lambda *_: None)
    assert error.value.where == "learning_rate"


def test_a_run_that_was_not_registered_is_noticed(embedded: Study) -> None:
    with pytest.raises(VerificationError, match="no run of the registered matrix"):
        audit(embedded, 1, 0, {}, lambda *_: None)


def test_the_command_refuses_summary_figures(toolkit: Callable[..., Result]) -> None:
    assert toolkit("registers", "audit", "--study", "published").code == 3


def test_the_command_replays_an_evaluation(toolkit: Callable[..., Result]) -> None:
    place = ("--run", RUN, "--step", 40, "--regime", "challenge", "--task", 3, "--schedule", 0)
    document = toolkit("episode", "replay", "--study", "embedded", *place, "--json").json()
    assert (document["verdict"], document["task"]) == ("verified", "validation:3")


@pytest.mark.parametrize(
    "place",
    [
        (),
        ("--run", RUN),
        ("--run", RUN, "--step", 40),
        ("--run", RUN, "--step", 40, "--regime", "clean", "--task", 3),
        ("--run", RUN, "--step", 40, "--regime", "clean", "--task", 3, "--schedule", 0, "--slot", 1),
        ("--run", RUN, "--step", 41, "--regime", "clean", "--task", 3, "--schedule", 0),
        ("--run", RUN, "--step", 40, "--regime", "clean", "--task", 64, "--schedule", 0),
        ("--run", RUN, "--step", 40, "--regime", "held_out_types", "--task", 3, "--schedule", 0),
        ("--run", "nobody", "--step", 40, "--regime", "clean", "--task", 3, "--schedule", 0),
        ("--run", RUN, "--step", 5, "--position", 24, "--slot", 0),
    ],
)
def test_a_place_that_is_none_is_wrong_usage(
    toolkit: Callable[..., Result], place: tuple[object, ...]
) -> None:
    result = toolkit("episode", "replay", "--study", "embedded", *place)
    assert (result.code, result.out) == (2, "")


def test_the_command_audits(toolkit: Callable[..., Result]) -> None:
    document = toolkit("registers", "audit", "--sample", 2, "--seed", 3, "--json").json()
    assert (document["study"], document["verdict"], document["sample"]) == ("embedded", "verified", 2)
