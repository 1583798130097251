"""What a run's registers can hold: the paper's maxima, and a refusal before anything is played."""

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.conftest import CHECKOUT
from tests.unit.lab.study.fake_play import QUIET, specification, wholly
from toolkit.errors import UsageError
from toolkit.lab.evaluation.sets import sets_at
from toolkit.lab.play import segments
from toolkit.lab.play.assemble import assemble, seal
from toolkit.lab.play.capacity import check_capacity, largest
from toolkit.lab.play.conclusion import conclude, files_of
from toolkit.lab.play.launches import Launch
from toolkit.lab.play.runner import play_runs
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.task_pools import summarize
from toolkit.lab.training.language_model.groups import Rollout, group_rows, step_figures
from toolkit.lab.training.recipe import load_recipe, specify_language_model
from toolkit.lab.training.rows import groups_at
from toolkit.registers import columns, row_tables
from toolkit.registers.arrow import Row
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.schema import TABLES
from toolkit.registers.study import open_study, verify_study
from toolkit.seeds import evaluation_seed
from toolkit.specification import (
    LanguageModelSpecification,
    Specification,
    read_specification,
)
from toolkit.verification.summaries import SUMMARIES

PAPER = load_recipe("qwen3.5-2b")
TOKENS, CALLS, COORDINATES = 6144, 21, 33_638_400
SIZES = {"steps": 100, "prompts_per_step": 24, "group_size": 8, "checkpoint_every": 20, "diagnosed": (0, 100)}


def paper_run(**changed: Any) -> LanguageModelSpecification:
    """Return a run with the paper's recipe."""
    pools = {"diagnostic": summarize("diagnostic").sha256}
    return specify_language_model(specification(**SIZES | {"pools": pools} | changed), PAPER, "f" * 40)


def _groups(run: Specification, step: int) -> list[Row]:
    """Return a step's groups as the trainer records them where every rollout is as long as it may be."""
    rollouts = [
        Rollout(
            step=step,
            position=group.position,
            task=group.task,
            regime=group.regime,
            slot=slot,
            schedule_seed=seed,
            true_success=slot % 2 == 0,
            exposed=True,
            observed_reward=slot % 2 == 0,
            advantage=1.0,
            tokens=TOKENS,
            weight=3.0,
        )
        for group in groups_at(run, step)
        for slot, seed in enumerate(group.schedule_seeds)
    ]
    return [{"run_id": run.run_id, **row} for row in group_rows(rollouts, run.group_size)]


def _episodes(run: Specification, step: int) -> Iterator[Row]:
    full = dict.fromkeys(QUIET, CALLS)
    for each in sets_at(run.battery, run.at_noise, is_last=step == run.steps):
        for task, schedule in itertools.product(range(each.tasks), range(each.schedules)):
            yield {
                "run_id": run.run_id,
                "phase": each.phase,
                "pool": each.pool,
                "regime": each.regime,
                "step": step,
                "task": task,
                "schedule": schedule,
                "schedule_seed": evaluation_seed(f"{each.pool}:{task}", schedule),
                "true_success": True,
                "observed_reward": True,
                "calls": CALLS,
                "ended": "finished",
                "world_changed": True,
                **full,
            }


def _segments(run: LanguageModelSpecification) -> Iterator[bytes]:
    """Yield a run's segments, every number in them as large as it can be."""
    tables = wholly(specification(**SIZES), 0, None)["luck_share"]
    before = ""
    for number, end in enumerate(run.ends):
        steps = range(end - run.checkpoint_every + 1, end + 1) if end else range(0)
        digest = {"sha256": "a" * 64, "state_sha256": "b" * 64, "adapter": None}
        rows = {
            "groups": [row for step in steps for row in _groups(run, step)],
            "episodes": list(_episodes(run, end)),
            "luck_share": [row | {"step": end} for row in tables if end in run.diagnosed],
            "steps": [{"run_id": run.run_id, "step": step, **step_figures({"loss": nan})} for step in steps],
            "adapters": [{"run_id": run.run_id, "step": end, "coordinates": COORDINATES, **digest}],
        }
        raw = segments.encode(segments.link(run, number, end, before), rows)
        before = hashlib.sha256(raw).hexdigest()
        yield raw


def test_every_register_of_a_run_at_the_paper_s_maxima_is_concluded_written_and_verified(tmp_path) -> None:
    """6,144 tokens a rollout, 8 rollouts a group, 24 groups a step, 100 steps, 21 calls an episode."""
    run = paper_run()
    raw = list(_segments(run))
    concluded = conclude(run, raw)
    assert json.loads(concluded["summary.json"])["shortcomings"] == []
    folder = Workplace(tmp_path / "runs").run(run)
    launch = folder.launch(Launch.now(run, 0, stack="torch 2.13.0", accelerator="H100", processes=1))
    folder.keep({segments.segment_name(number): content for number, content in enumerate(raw)} | concluded)
    folder.complete(files_of(run))
    folder.record(launch.ended(0.0, 1.0))
    assembly = assemble(Workplace(tmp_path / "runs"), [run], lambda _: None)
    seal(tmp_path / "small", "small", RegistrationRef("small", "f" * 64, {}), assembly)
    study = open_study(tmp_path / "small")
    assert verify_study(study)["runs"] == 1
    groups = study.arrow("groups")
    assert "decisions" not in groups.column_names
    assert groups.num_rows == 2400
    assert {tuple(tokens) for tokens in groups["tokens"].to_pylist()} == {(TOKENS,) * 8}
    assert study.rows("adapters")[0]["coordinates"] == COORDINATES
    assert [(row["step"], row["loss"]) for row in study.rows("steps")] == [(1 + s, None) for s in range(100)]
    assert study.rows("runs")[0]["training_rollouts"] == 19_200


def test_the_paper_s_runs_and_every_shipped_run_fit() -> None:
    for most in largest(paper_run(), COORDINATES):
        assert most.value <= (most.column.type.most or 0), (most.table, most.column.name)
    check_capacity(paper_run(), COORDINATES)
    check_capacity(specification())


@pytest.mark.parametrize(
    ("run", "coordinates", "said"),
    [
        (specification(group_size=400), None, "groups.decisions"),
        (specification(steps=40_000, checkpoint_every=10_000), None, "groups.step"),
        (specification(prompts_per_step=32_769), None, "groups.position"),
        (specification(prompts_per_step=3_277, constant_groups="resampled"), None, "groups.position"),
        (paper_run(group_size=32_768), None, "groups.exposed"),
        (paper_run(seed=2**31), None, "runs.seed"),
        (paper_run(prompts_per_step=32_000, steps=2_000), None, "runs.episodes"),
        (paper_run(), 2**31, "adapters.coordinates"),
        (paper_run(), 2**30, "too large to be read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sizes_that_a_column_or_a_file_cannot_hold_are_refused(run, coordinates, said) -> None:
    with pytest.raises(UsageError, match=said.replace(".", r"\.")) as raised:
        check_capacity(run, coordinates)
    error = raised.value
    assert all((error.expected, error.found, error.where, error.remedy))


def test_a_run_that_its_registers_could_not_hold_is_not_begun(tmp_path: Path) -> None:
    run = specification(group_size=400)
    with pytest.raises(UsageError, match=r"groups\.decisions cannot hold"):
        play_runs(Workplace(tmp_path), [run], play=wholly)
    assert not list(tmp_path.iterdir())


def test_the_decisions_of_today_s_recipe_would_not_have_fitted_its_column() -> None:
    """What a language model's groups left out: it is the sum of their tokens."""
    decisions = TABLES["groups"].column("decisions")
    assert decisions is not None
    assert (decisions.type.most or 0) < TOKENS * 8
    assert decisions.optional


NOT_KNOWN_BEFORE = {("launches", "attempt"), ("launches", "processes")}
PLAYED_ELSEWHERE = {(table, name) for table in ("episodes", "evaluations") for name in row_tables.OF_IMPORTS}
OF_THE_OTHER_POLICY = {True: {("groups", "decisions")}, False: {("groups", "tokens")}}


@pytest.mark.parametrize("run", [specification(), paper_run()], ids=["log-linear", "language model"])
def test_no_whole_number_of_a_run_s_rows_is_forgotten(run: Specification) -> None:
    """A column that is added is bounded, or named here."""
    tables = (*segments.names_of(run), *SUMMARIES, row_tables.SCHEDULES.name, row_tables.LAUNCHES.name)
    whole = (columns.Type.INT16, columns.Type.INT32, columns.Type.INT64, columns.Type.INT32S)
    every = {
        (table, column.name) for table in tables for column in TABLES[table].columns if column.type in whole
    }
    bounded = {(most.table, most.column.name) for most in largest(run, COORDINATES)}
    is_model = isinstance(run, LanguageModelSpecification)
    assert bounded == every - NOT_KNOWN_BEFORE - PLAYED_ELSEWHERE - OF_THE_OTHER_POLICY[is_model]


@pytest.mark.parametrize("name", ["embedded", "tiny-lm"])
def test_what_a_run_plays_stays_below_its_bounds(name: str) -> None:
    """The largest numbers of the shipped studies, against the bounds of one of their runs."""
    study = open_study(CHECKOUT / "registers" / name)
    run = read_specification(json.loads(study.rows("runs")[0]["specification"] or ""))
    highest = max(row["seed"] for row in study.rows("runs"))
    for most in largest(replace(run, seed=highest), COORDINATES):
        table = study.arrow(most.table) if study.has(most.table) else None
        if table is not None and most.column.name in table.column_names:
            column = table[most.column.name].combine_chunks()
            values = column.flatten() if most.column.type.is_list else column
            assert (pc.max(values).as_py() or 0) <= most.value, (most.table, most.column.name)
