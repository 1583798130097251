"""A run's training steps on its page: drawn and listed as the register has them, or not spoken of."""

import hashlib
import re
from datetime import UTC, datetime
from math import sin
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.unit.decisions.rows_study import AsStored, registered_study
from tests.unit.site.reading import made_by, rendered, section, text, tree
from toolkit.decisions.case import Case
from toolkit.decisions.case import open_case as open_as_stored
from toolkit.site.charts.curves import Step, training_steps
from toolkit.site.charts.svg import Chart
from toolkit.site.checking import check_budgets
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.pages import run

RUN, OTHER = "C2-paired-1", "C2-independent-1"
PAGE = f"rows/runs/{RUN}.html"
LAST, TAKEN_UP = 50, 20
LAUNCH = {
    "launched_at": datetime(2026, 9, 10, tzinfo=UTC),
    "ended_at": None,
    "wall_time_s": None,
    "peak_memory_mb": None,
    **dict.fromkeys(("python", "platform", "code_version", "specification_sha256"), "here"),
}
NUMBER = {
    "Loss": "loss",
    "Gradient norm": "grad_norm",
    "Entropy": "entropy",
    "Share of tokens clipped": "clipped",
    "Importance weight": "importance_weight_mean",
    "Seconds a step": "seconds",
}
WEIGHTS = tuple(f"importance_weight_{which}" for which in ("mean", "min", "max"))
BAND = ("Importance weight", "Seconds a step")


def step_row(step: int) -> dict[str, Any]:
    weight = 1 + 0.1 * sin(step)
    return {
        "run_id": RUN,
        "step": step,
        "loss": None if step in (7, 30, 32) else 0.01 * sin(1.7 * step),
        "grad_norm": 0.3 + 0.2 * sin(step) ** 2,
        "entropy": 0.5 - step / 200,
        "clipped": 0.0,
        "importance_weight_mean": weight,
        "importance_weight_min": weight / 3,
        "importance_weight_max": 2 * weight,
    }


def launch_row(attempt: int, first: int, seconds: list[float]) -> dict[str, Any]:
    taken = {"step_seconds": seconds, "generation_seconds": [0.7 * number for number in seconds]}
    return {**LAUNCH, "run_id": RUN, "attempt": attempt, "from_step": first, **taken}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steps")


@pytest.fixture(scope="module")
def pages(case: Case, folder: Path) -> dict[str, Page]:
    rows = {
        "steps": [step_row(step) for step in range(1, LAST + 1)],
        "launches": [
            launch_row(1, 0, [30 + 5 * sin(step) for step in range(TAKEN_UP)]),
            launch_row(2, TAKEN_UP, [40 + 5 * sin(step) for step in range(TAKEN_UP, LAST)]),
        ],
    }
    study = registered_study(folder, case, rows)
    return made_by(Material((open_as_stored(study, case.registration, AsStored(study)),)), run)


@pytest.fixture(scope="module")
def recorded(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the files, each with its seconds."""
    (steps,), (launches,) = ((folder / name).glob("*.parquet") for name in ("steps", "launches"))
    taken = [
        pair
        for row in pl.read_parquet(launches).sort("attempt").to_dicts()
        for pair in zip(row["step_seconds"], row["generation_seconds"], strict=True)
    ]
    rows = pl.read_parquet(steps).sort("step").to_dicts()
    timed = [{"seconds": whole, "generation": part, "zero": 0.0} for whole, part in taken]
    return [{**row, **times} for row, times in zip(rows, timed, strict=True)]


def drawings(page: Page) -> dict[str, Chart]:
    """Return the page's charts of steps by what their titles begin with."""
    return {re.split("[:,]", chart.title)[0]: chart for chart in page.context["step_charts"]}


def test_every_drawn_number_is_the_register_s(pages: dict[str, Page], recorded: list[dict[str, Any]]) -> None:
    charts = drawings(pages[PAGE])
    assert charts.keys() == NUMBER.keys()
    for what, chart in charts.items():
        assert (chart.columns[0], chart.narrow) == ("step", "")
        found = re.findall(r'data-row="([^"]*)"', chart.wide)
        drawn = [tuple(map(float, row.split(","))) for rows in found for row in rows.split("\n")]
        values = [(row["step"], row[NUMBER[what]]) for row in recorded if row[NUMBER[what]] is not None]
        assert drawn == values, what
        assert ('class="band"' in chart.wide) == (what in BAND)


def test_the_rows_beside_the_drawings_are_read_from_the_registers_own_file(pages, folder) -> None:
    (shown,) = (file for file in pages[PAGE].context["files"] if file.table == "steps")
    (file,) = (folder / "steps").glob("*.parquet")
    assert shown.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert shown.rows == LAST
    assert '<details data-rows="steps">' in rendered(pages[PAGE])


def test_titles_and_captions_say_what_is_drawn(pages, recorded) -> None:
    charts = {chart.title.partition(":")[0]: chart for chart in pages[PAGE].context["step_charts"]}
    share = sum(row["generation"] for row in recorded) / sum(row["seconds"] for row in recorded)
    assert f"Seconds a step, {share:.0%} in rollouts" in charts
    weights = charts["Importance weight, mean"]
    assert f"mean: {recorded[0]['importance_weight_mean']:.3g} at step 1, " in weights.title
    assert f"{recorded[-1]['importance_weight_mean']:.3g} at step {LAST}" in weights.title
    low = min(row["importance_weight_min"] for row in recorded)
    high = max(row["importance_weight_max"] for row in recorded)
    assert f"from the least to the greatest weight, {low:.3g} to {high:.3g}." in weights.caption
    assert charts["Loss"].caption.endswith("No number at 3 steps: 7, 30, 32.")
    entropy = max(recorded, key=lambda row: row["entropy"])
    assert (
        f"greatest {entropy['entropy']:.3g} at step {entropy['step']}"
        in charts["Entropy, nats a token"].caption
    )


def test_drawings_need_no_script_and_keep_the_page_small(pages: dict[str, Page]) -> None:
    page = rendered(pages[PAGE], drawn=True)
    assert page.count('<svg class="drawing') == 1 + len(NUMBER)  # and true success
    assert list(check_budgets({PAGE: page.encode()})) == []
    without = rendered(pages[f"rows/runs/{OTHER}.html"], drawn=True)
    assert len(page) - len(without) < 2000 * LAST


def test_of_few_steps_each_has_a_mark_that_says_its_number(case: Case, tmp_path: Path) -> None:
    rows = {"steps": [{**step_row(step), **dict.fromkeys(WEIGHTS, 1.0)} for step in (1, 2, 3)]}
    study = registered_study(tmp_path, case, rows)
    page = made_by(Material((open_as_stored(study, case.registration, AsStored(study)),)), run)[PAGE]
    said = re.findall(r'aria-label="([^"]*)" data-row="([^"]*)"', rendered(page, drawn=True))
    (file,) = (tmp_path / "steps").glob("*.parquet")
    for row in pl.read_parquet(file).to_dicts():
        words = f"Gradient norm, step {row['step']}: {row['grad_norm']:.3g}"
        assert (words, f"{row['step']},{row['grad_norm']}") in said
    assert "Seconds a step" not in text(section(tree(page), "steps"))  # no launch was recorded


def test_a_study_without_the_table_says_nothing_of_it(case: Case, pages: dict[str, Page]) -> None:
    published = made_by(Material((case,)), run)["published/runs/t1-c2-paired-s1.html"]
    for page in (published, pages[f"rows/runs/{OTHER}.html"]):
        assert "Training steps" not in rendered(page)


def test_a_run_of_one_step_and_one_without_numbers_are_drawn() -> None:
    none = (None, None, None)
    (entropy,) = training_steps((Step(1, None, None, 0.5, None, none, None, None),))
    assert entropy.title == "Entropy, nats a token: 0.5 at step 1"
    assert "<svg" in entropy.svg
    assert training_steps((Step(1, None, None, None, None, none, None, None),)) == []
