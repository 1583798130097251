"""What a run's registers can hold: the paper's maxima, and a refusal before anything is played."""

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.conftest import CHECKOUT
from tests.unit.lab.study.fake_play import specification, wholly
from toolkit.errors import UsageError
from toolkit.lab.play import segments
from toolkit.lab.play.capacity import check_capacity, largest
from toolkit.lab.play.runner import play_runs
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.task_pools import summarize
from toolkit.lab.training.recipe import load_recipe, specify_language_model
from toolkit.registers import columns, row_tables
from toolkit.registers.schema import TABLES
from toolkit.registers.study import open_study
from toolkit.specification import LanguageModelSpecification, Specification, read_specification
from toolkit.structs import replace
from toolkit.verification.summaries import SUMMARIES

PAPER = load_recipe("qwen3.5-2b")
COORDINATES = 33_638_400
SIZES = {"steps": 100, "prompts_per_step": 24, "group_size": 8, "checkpoint_every": 20, "diagnosed": (0, 100)}


def paper_run(**changed: Any) -> LanguageModelSpecification:
    """Return a run with the paper's recipe."""
    pools = {"diagnostic": summarize("diagnostic").sha256}
    return specify_language_model(specification(**SIZES | {"pools": pools} | changed), PAPER, "f" * 40)


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


@pytest.mark.parametrize("name", [pytest.param("embedded", marks=pytest.mark.slow), "tiny-lm"])
def test_what_a_run_plays_stays_below_its_bounds(name: str) -> None:
    """The largest numbers of the shipped studies, against the bounds of one of their runs."""
    study = open_study(CHECKOUT / "registers" / name)
    run = read_specification(json.loads(study.rows("runs")[0]["specification"] or ""), "here")
    highest = max(row["seed"] for row in study.rows("runs"))
    for most in largest(replace(run, seed=highest), COORDINATES):
        table = study.arrow(most.table) if study.has(most.table) else None
        if table is not None and most.column.name in table.column_names:
            column = table[most.column.name].combine_chunks()
            values = column.flatten() if most.column.type.is_list else column
            assert (pc.max(values).as_py() or 0) <= most.value, (most.table, most.column.name)
