"""The page of a run: what was recorded of it, its training steps, and what was not."""

import hashlib
import html
import re
import subprocess
from datetime import UTC, datetime
from math import sin
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.unit.decisions.rows_study import AsStored, registered_study
from tests.unit.site.reading import Read, made_by, pages_of, rendered
from toolkit.decisions.case import Case
from toolkit.decisions.case import open_case as open_as_stored
from toolkit.places import Home
from toolkit.registers.study import open_study
from toolkit.site.charts.curves import training_steps
from toolkit.site.charts.svg import Chart
from toolkit.site.material import Material
from toolkit.site.page import Page, counts_of, run_page, slug
from toolkit.site.pages import run
from toolkit.site.pages.rule import counts_fragment, seed_rows
from toolkit.site.pages.run import runs_of_trajectories
from toolkit.site.registers import played_files
from toolkit.structs import replace

PAGE = "rows/runs/C2-paired-1.html"
HOSTILE = '../../<script>alert("x")</script>`$(y)`' + "z" * 5000


@pytest.fixture(scope="module")
def forged(some: Case, case: Case, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A study whose texts are somebody else's idea of a text."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: [dict(row) for row in some.study.rows(name)] for name in ("runs", "evaluations")
    }
    run_row = rows["runs"][0]
    for name in ("provider", "specification", "code_commit"):
        run_row[name] = HOSTILE
    old = run_row["run_id"]
    for row in (*rows["runs"], *rows["evaluations"]):
        if row["run_id"] == old:
            row["run_id"] = HOSTILE
    study = registered_study(tmp_path_factory.mktemp("forged"), case, rows)
    return open_as_stored(study, case.registration, AsStored(study))


def test_a_published_run_says_that_its_episodes_never_were(case: Case, pages: dict[str, Page]) -> None:
    read = Read(rendered(pages["published/runs/t1-c2-paired-s1.html"]))
    assert "The episodes of this run were never published" in read.text
    assert "episodes" not in read.ids
    assert sum("/runs/" in name for name in pages) == len(case.study.rows("runs"))


def test_a_run_names_its_episodes_its_partners_and_its_readers(some: Case) -> None:
    made = made_by(Material((some,)), run)
    read = Read(rendered(made[PAGE], [*made, *(f"rows/{rule}.html" for rule in some.book.rules)]))
    for part in (
        "episodes/C2-paired-1.parquet",
        "Same condition and seed: independent, C2-independent-1.",
        "Read by H1a, H1b, H2a, H3",
    ):
        assert part in read.text
    assert "training" not in read.ids  # nothing of its groups was counted, and no luck share diagnosed
    assert "episodes" in read.ids
    assert "#phase=periodic&pool=validation&regime=faults_p025" in read.links


@pytest.fixture(scope="module")
def hostile(forged: Case) -> str:
    return rendered(made_by(Material((forged,)), run)[run_page("rows", HOSTILE)])


def test_hostile_text_is_shown_as_text_and_cut(hostile: str) -> None:
    text = hostile
    assert '<script>alert("x")' not in text
    assert len(text) < 60_000
    assert "<script" not in text.split("data-kind")[1].split('<script type="application/json"')[0]
    assert HOSTILE[:60] in Read(text).text


def test_a_name_that_could_leave_the_folder_does_not() -> None:
    assert slug("c2-paired-s0.1_x") == "c2-paired-s0.1_x"
    for name in ("../x", "a/b", ".hidden", "", "a b", "ä", "x" * 101, "a%2e", "a\\b", "a#b"):
        assert slug(name).startswith("x-")
        assert slug(name).removeprefix("x-").isalnum()


def test_an_endpoint_by_seed_says_how_many_episodes_each_arm_has(some: Case) -> None:
    (second,) = [row for row in seed_rows(some, some.book.endpoints["c2_auc"]) if row["seed"] == 1]
    assert [(arm["arm"], arm["run"], arm["episodes"]) for arm in second["arms"]] == [
        ("paired", "C2-paired-1", 768),  # six steps of 64 tasks under two schedules
        ("independent", "C2-independent-1", 768),
    ]
    assert second["arms"][0]["target"] == f"{PAGE}#phase=periodic&pool=validation&regime=faults_p025"
    last = replace(some.book.endpoints["c2_auc"], steps=(100,))
    arms = [arm for row in seed_rows(some, last) for arm in row["arms"]]
    assert {(arm["episodes"], arm["target"].rpartition("&")[2]) for arm in arms} == {(128, "step=100")}


def test_an_arm_that_did_not_run_says_so(some: Case) -> None:
    rows = seed_rows(some, some.book.endpoints["c4_auc"])
    assert all(arm["run"] == "" and "was not run" in arm["missing"] for row in rows for arm in row["arms"])
    assert {row["value"] for row in rows} == {None}


def test_a_run_that_the_probe_followed_is_read_by_the_probes_rules(pages: dict[str, Page]) -> None:
    """The published amendment A1: trajectory A is the gate-1 run, trajectory B is C2 paired seed 1."""
    for name in ("t1-c2-paired-s1", "gate1-c2-paired-s0"):
        text = Read(rendered(pages[f"published/runs/{name}.html"])).text
        read_by = text[text.index("Read by ") : text.index(" Not run, and would read it")]
        assert {"H1b", "P13"} <= set(read_by.removeprefix("Read by ").rstrip(".").split(", "))
        if name == "t1-c2-paired-s1":  # rules that were not run are told apart
            assert "P8" not in read_by
            assert text.partition(" Not run, and would read it: ")[2].startswith("P5, P8.")
    assert "H1b" not in Read(rendered(pages["published/runs/t1-c2-paired-s2.html"])).text


def test_a_sentence_that_fits_two_runs_names_no_trajectory(case: Case) -> None:
    amendment = replace(
        case.registration.amendments[0],
        changes=("Trajectory A is the t1 run.", "Trajectory B is C2 paired seed 1.", "Trajectory C is C9."),
    )
    told = replace(case, registration=replace(case.registration, amendments=(amendment,)))
    assert {key: run for key, run in runs_of_trajectories(told).items() if key != run} == {
        "B": "t1-c2-paired-s1"
    }


def test_a_seed_of_a_study_without_episodes_leads_to_the_counts_of_its_set(case, pages) -> None:
    (second,) = [row for row in seed_rows(case, case.book.endpoints["c2_auc"]) if row["seed"] == 1]
    name, _, place = second["arms"][0]["target"].partition("#")
    assert name == "published/runs/t1-c2-paired-s1.html"
    page = rendered(pages[name])
    assert {"counts", place} <= Read(page).ids
    (counted,) = re.findall(rf'<tbody id="{place}">(.*?)</tbody>', page, re.DOTALL)
    rows = counted.split("<tr")[1:]
    assert "t1-c2-paired-s1, periodic validation faults p025: counts alone" in rows[0]
    assert "its episode rows were never published" in rows[0]
    assert len(rows) == 1 + 6
    # One that names no whole set leads to all counts; a set of any name has a plain id.
    assert counts_fragment(replace(case.book.endpoints["c2_auc"], where={"phase": "periodic"})) == "counts"
    assert counts_of("final", "test", 'x" onclick="y').startswith("counts-x-")


def test_a_hostile_run_stays_one_word_of_every_command(hostile: str) -> None:
    found = re.findall(r'<pre class="command"><code>(.*?)</code>', hostile)
    commands = [html.unescape(text) for text in found]
    assert commands
    for command in commands:
        shell = ["bash", "-c", f"toolkit() {{ printf '%s\\0' \"$@\"; }}\n{command}"]
        done = subprocess.run(shell, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        assert any(HOSTILE in word.replace("''", "'") for word in done.stdout.split("\0"))


DOCUMENT = {
    "phase": "final",
    "pool": "test",
    "regime": "faults_p025",
    "step": 100,
    "task": 3,
    "schedule": 1,
    "schedule_seed": "18446744073709551615",
    "prompt": HOSTILE,
    "true_success": False,
    "observed_reward": 0,
    "ended": "budget",
    "calls_charged": 1,
    "budget": 9,
    "differences": [{}],
    "calls": [
        {
            "tool": "get_order",
            "arguments": {"order": "O-1"},
            "key": ["get_order", "O-1", 0],
            "fault": "outage",
            "blocked_by": None,
            "charged": True,
            "answer": {"text": "z" * 9000},
        }
    ],
}


def test_played_episodes_travel_as_a_script_of_the_run_and_long_answers_are_cut(some: Case) -> None:
    played = {"rows": {"C2-paired-1": [DOCUMENT], "C2-paired-0": "they need a world"}}
    material = Material((some,), played=played, played_how="by a rule")
    [(name, content)] = played_files(material).items()
    assert name == "data/rows/played/C2-paired-1.js"
    assert len(content) < 8000
    assert b'"schedule_seed":"18446744073709551615"' in content
    assert b"<script" not in content
    pages = pages_of(material, run)
    assert 'data-played="C2-paired-1"' in pages[PAGE]
    assert "Chosen by a rule: by a rule." in Read(pages[PAGE]).text
    assert "shown call by call: they need a world." in Read(pages["rows/runs/C2-paired-0.html"]).text


def test_every_run_has_a_page_however_many_there_are_and_names_its_own_files_alone(home: Home) -> None:
    study = open_study(home.study_folder("map"))
    assert len(study.rows("runs")) > 900
    files = run.files_by_run(study)
    for row in study.rows("runs"):
        (file,) = (file for file in files[row["run_id"]] if file.table == "episodes")
        assert file.is_carried
        assert file.name == f"episodes/{row['run_id']}.parquet"
        assert file.sha256 == study.files("episodes")[file.name]


RUN, OTHER = "C2-paired-1", "C2-independent-1"
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
def stepped(case: Case, folder: Path) -> dict[str, Page]:
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


def test_every_drawn_number_is_the_register_s(
    stepped: dict[str, Page], recorded: list[dict[str, Any]]
) -> None:
    charts = drawings(stepped[PAGE])
    assert charts.keys() == NUMBER.keys()
    for what, chart in charts.items():
        assert (chart.columns[0], chart.narrow) == ("step", "")
        found = re.findall(r'data-row="([^"]*)"', chart.wide)
        drawn = [tuple(map(float, row.split(","))) for rows in found for row in rows.split("\n")]
        values = [(row["step"], row[NUMBER[what]]) for row in recorded if row[NUMBER[what]] is not None]
        assert drawn == values, what
        assert ('class="band"' in chart.wide) == (what in BAND)


def test_the_rows_beside_the_drawings_are_read_from_the_registers_own_file(stepped, folder) -> None:
    (shown,) = (file for file in stepped[PAGE].context["files"] if file.table == "steps")
    (file,) = (folder / "steps").glob("*.parquet")
    assert shown.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert shown.rows == LAST
    assert '<details data-rows="steps">' in rendered(stepped[PAGE])


def test_titles_and_captions_say_what_is_drawn(stepped, recorded) -> None:
    charts = {chart.title.partition(":")[0]: chart for chart in stepped[PAGE].context["step_charts"]}
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


def test_a_study_without_the_table_says_nothing_of_it(pages, stepped) -> None:
    published = pages["published/runs/t1-c2-paired-s1.html"]
    for page in (published, stepped[f"rows/runs/{OTHER}.html"]):
        assert "Training steps" not in rendered(page)


def test_a_run_of_one_step_and_one_without_numbers_are_drawn() -> None:
    (entropy,) = training_steps([{"step": 1, "entropy": 0.5}])
    assert entropy.title == "Entropy, nats a token: 0.5 at step 1"
    assert "<svg" in entropy.svg
    assert training_steps([{"step": 1, "entropy": None}]) == []
