"""Trajectories of a language model: sampled, scored, written down, gone on with, and what is refused."""

from __future__ import annotations

import base64
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.conftest import snapshot
from tests.unit.lab.probe.tiny import loop_scores
from tests.unit.stack import require_stack

require_stack()


from tests.unit.lab.study import small_model as small  # noqa: E402
from tests.unit.lab.study.small_model import DESIGN, RUNS, specification  # noqa: E402
from toolkit.errors import DamagedError, UsageError  # noqa: E402
from toolkit.lab.executors.executor import Executor  # noqa: E402
from toolkit.lab.play.assemble import Assembly  # noqa: E402
from toolkit.lab.policies.language_model.loading import load_chat  # noqa: E402
from toolkit.lab.probe import language_model  # noqa: E402
from toolkit.lab.probe.recorded import Recorded  # noqa: E402
from toolkit.lab.probing.run import (  # noqa: E402
    probe_all,
    probe_jobs,
    read_probed,
)
from toolkit.registers.arrow import to_arrow  # noqa: E402
from toolkit.registers.row_tables import TABLES_OF_PROBE  # noqa: E402
from toolkit.registers.schema import TABLES  # noqa: E402
from toolkit.registers.validation import check_table  # noqa: E402
from toolkit.seeds import evaluation_seed, sampling_seed  # noqa: E402
from toolkit.structs import replace  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.lab.probing.run import MeasuredProbe, ProbeJob
    from toolkit.registers.arrow import Row

SINGLE = 1e-4


@pytest.fixture(scope="module")
def rows(base: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    folder = tmp_path_factory.mktemp("adapters")
    return {run: small.adapter_rows(base, specification(base, run), folder) for run in RUNS}


@pytest.fixture(scope="module")
def jobs(base: Path, rows: dict[str, list[Row]]) -> tuple[ProbeJob, ...]:
    return probe_jobs(DESIGN, [specification(base, run) for run in RUNS], rows)  # type: ignore[return-value]


@pytest.fixture(scope="module", autouse=True)
def graded() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language_model, "Recorded", small.graded)
        yield


@pytest.fixture(scope="module")
def folder(jobs: tuple[ProbeJob, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all were probed in one go."""
    place = tmp_path_factory.mktemp("probe")
    probe_all(place, jobs)
    return place


@pytest.fixture(scope="module")
def probed(jobs: tuple[ProbeJob, ...], folder: Path) -> MeasuredProbe:
    return probe_all(folder, jobs)


def speaker(model: Any, base: Path) -> language_model.Speaker:
    return language_model.Speaker(model, load_chat(str(base)), 1.0, 24, 24)


def gram_of(probed: MeasuredProbe, trajectory: str, step: int, noise: str) -> list[Row]:
    import io

    import pyarrow.parquet as pq

    listed = pq.read_table(io.BytesIO(probed.evidence[trajectory])).to_pylist()
    return [row for row in listed if (row["step"], row["noise"]) == (step, noise)]


def test_its_gram_matrices_are_those_of_scores_from_a_loop_of_backward_passes(base, probed) -> None:
    """Of the first task of each set."""
    run = RUNS[1]
    model = small.adapted(base, specification(base, run), 12)  # as the row of step 10 was made
    sampling = sampling_seed(DESIGN.root, run, 0)
    for rollouts in DESIGN.sets:
        task = next(iter(language_model.record_tasks(speaker(model, base), rollouts, sampling, 10)))
        row, *others = gram_of(probed, run, 10, rollouts.noise)
        assert len(others) == rollouts.tasks - 1
        scores = loop_scores(model, task.transcripts).astype(np.float64)
        expected = (scores @ scores.T)[np.triu_indices(len(scores))]
        assert np.abs(np.array(row["gram"]) - expected).max() < SINGLE * expected.max()
        assert row["rewards"] == [bool(sum(transcript.tokens) % 2) for transcript in task.transcripts]
        assert row["tokens"] == [sum(transcript.chosen) for transcript in task.transcripts]
        assert set(row["weights"]) == {1.0}


def test_a_reward_is_the_true_outcome_of_the_rollout_s_desk(base, monkeypatch) -> None:
    """Task by task, schedule by schedule: a desk is a success here where its schedule's seed is odd."""
    model = small.adapted(base, specification(base, RUNS[0]), 2)
    monkeypatch.setattr(language_model, "Recorded", Recorded)
    monkeypatch.setattr(
        language_model, "close", lambda desk: SimpleNamespace(true_success=desk.schedule.seed % 2)
    )
    rollouts = DESIGN.transition
    found = [task.rewards for task in language_model.record_tasks(speaker(model, base), rollouts, 5, 10)]
    odd = [[evaluation_seed(f"diagnostic:{task}", k) % 2 for k in range(2)] for task in range(2)]
    assert {each for task in odd for each in task} == {0, 1}
    assert found == [tuple(float(each) for each in task for _ in range(2)) for task in odd]


def test_a_stop_leaves_what_was_finished_and_goes_on_from_there(jobs, folder, tmp_path) -> None:
    def stop(done: int, *_: object) -> None:
        if done == len(jobs):
            raise KeyboardInterrupt

    for path in (*folder.glob("base.*"), *folder.glob(f"{RUNS[0]}.*")):
        shutil.copy(path, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        probe_all(tmp_path, jobs, Executor(places=1, watch=stop))
    assert len(probe_all(tmp_path, jobs).kept) == len(jobs)
    assert snapshot(tmp_path) == snapshot(folder)


def test_its_tables_obey_the_schema_and_name_the_adapters_that_were_scored(jobs, rows, probed) -> None:
    assembly = probed.added_to(Assembly({}, {}))
    assert set(assembly.files) == set(TABLES_OF_PROBE)
    for name, part in probed.rows.items():
        check_table(TABLES[name], to_arrow(TABLES[name], part))
    assert any(row["trace_paired"] > 0 for row in probed.rows["probe"] if row["noise"] == "outcome")
    assert probed.largest_residual < 1e-9
    stored = {(row["trajectory"], row["step"]): row for row in probed.rows["probe_checkpoints"]}
    # The untrained policy is probed with the adapter of the first run.
    scored = {("base", 0): rows[RUNS[0]][0]}
    scored |= {(run, row["step"]): row for run in RUNS for row in rows[run][1:]}
    assert stored.keys() == scored.keys()
    for place, row in scored.items():
        assert stored[place]["adapter_sha256"] == row["sha256"]
        assert stored[place]["coordinates"] == row["coordinates"]
    assert len({row["coordinate_names_sha256"] for row in stored.values()}) == 1
    assert len({row["adapter_fingerprint"] for row in stored.values()}) == len(stored)


def test_what_was_probed_of_another_adapter_recipe_or_model_is_not_kept(jobs, folder, base) -> None:
    job = jobs[1]
    assert read_probed(folder, job) is not None
    first, *others = job.checkpoints
    for changed in (
        replace(job, checkpoints=({**first, "sha256": "0" * 64}, *others)),
        replace(job, run=specification(base, job.run.run_id, "sampling.max_turns=3")),
        replace(job, run=replace(job.run, model_commit="0" * 64)),  # type: ignore[call-arg]
    ):
        assert read_probed(folder, changed) is None


def test_an_adapter_of_other_bytes_than_its_row_s_is_refused(jobs, tmp_path) -> None:
    row = jobs[1].checkpoints[0]
    raw = bytearray(base64.b64decode(row["adapter"]))
    raw[-1] ^= 1
    job = replace(jobs[1], checkpoints=({**row, "adapter": base64.b64encode(raw).decode()},))
    with pytest.raises(DamagedError, match="not the one that was written"):
        probe_all(tmp_path, [job])
    assert not list(tmp_path.glob("*.json"))


def test_another_base_model_is_refused(jobs: tuple[ProbeJob, ...], tmp_path: Path) -> None:
    other = specification(small.save_base(tmp_path / "other", seed=2), RUNS[0])
    job = replace(jobs[1], run=replace(other, model_commit=jobs[1].run.model_commit))
    with pytest.raises(UsageError, match="starts from another model") as error:
        probe_all(tmp_path / "probe", [job])
    assert error.value.found == f"{tmp_path / 'other'} at {other.model_commit}"


def test_an_adapter_of_another_recipe_is_refused_and_so_are_other_coordinates(
    jobs: tuple[ProbeJob, ...], base: Path, folder: Path, tmp_path: Path
) -> None:
    other = specification(base, RUNS[0], "lora.rank=4", "lora.alpha=8")
    row = small.adapter_row(small.adapted(base, other, 3), RUNS[0], 10, tmp_path / "adapter")
    foreign = replace(jobs[1], checkpoints=(row,))
    with pytest.raises(DamagedError, match="not one of this model and recipe"):
        probe_all(tmp_path / "probe", [foreign])
    for path in folder.glob("base.*"):
        shutil.copy(path, tmp_path / "probe")
    with pytest.raises(DamagedError, match="mismatched coordinate sets"):
        probe_all(tmp_path / "probe", [jobs[0], replace(foreign, run=other)])


def test_only_the_arms_of_one_seed_have_to_begin_from_one_adapter(base, rows) -> None:
    first, second = (specification(base, run) for run in RUNS)
    changed = {**rows, RUNS[1]: [{**rows[RUNS[1]][0], "sha256": "0" * 64}, *rows[RUNS[1]][1:]]}
    with pytest.raises(DamagedError, match="began from another policy"):
        probe_jobs(DESIGN, [first, second], changed)
    assert len(probe_jobs(DESIGN, [first, replace(second, seed=1)], changed)) == 3


@pytest.mark.slow
def test_processes_change_no_byte(jobs: tuple[ProbeJob, ...], folder: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language_model, "Recorded", Recorded)  # as other processes grade
        probe_all(tmp_path / "one", jobs[:2])
    probe_all(tmp_path / "two", jobs[:2], Executor(places=2))
    assert snapshot(tmp_path / "two") == snapshot(tmp_path / "one")
