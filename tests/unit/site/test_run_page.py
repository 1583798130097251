"""The page of a run: what was recorded of it, its training steps, and what was not."""

import html
import re
import subprocess
from math import sin
from typing import Any

import pytest

from tests.unit.decisions.rows_study import AsStored, registered_study
from tests.unit.site.reading import Read, page_of, pages_of, rendered
from toolkit.decisions.case import Case
from toolkit.decisions.case import open_case as open_as_stored
from toolkit.site.charts.curves import training_steps
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
def hostile(some: Case, case: Case, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run whose texts are somebody else's idea of a text."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: [dict(row) for row in some.study.rows(name)] for name in ("runs", "evaluations")
    }
    old = rows["runs"][0]["run_id"]
    rows["runs"][0] |= dict.fromkeys(("provider", "specification", "code_commit"), HOSTILE)
    for row in (*rows["runs"], *rows["evaluations"]):
        row["run_id"] = HOSTILE if row["run_id"] == old else row["run_id"]
    study = registered_study(tmp_path_factory.mktemp("forged"), case, rows)
    forged = open_as_stored(study, case.registration, AsStored(study))
    return pages_of(Material((forged,)), run)[run_page("rows", HOSTILE)]


def test_hostile_text_is_shown_as_text_and_cut(hostile: str) -> None:
    assert '<script>alert("x")' not in hostile
    assert len(hostile) < 60_000
    assert "<script" not in hostile.partition("data-kind")[2].partition('<script type="application/json"')[0]
    assert HOSTILE[:60] in Read(hostile).text


def test_a_hostile_run_stays_one_word_of_every_command(hostile: str) -> None:
    commands = [html.unescape(t) for t in re.findall(r'<pre class="command"><code>(.*?)</code>', hostile)]
    assert commands
    for command in commands:
        shell = ["bash", "-c", f"toolkit() {{ printf '%s\\0' \"$@\"; }}\n{command}"]
        done = subprocess.run(shell, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        assert any(HOSTILE in word.replace("''", "'") for word in done.stdout.split("\0"))


def test_a_name_that_could_leave_the_folder_does_not() -> None:
    assert slug("c2-paired-s0.1_x") == "c2-paired-s0.1_x"
    for name in ("../x", "a/b", ".hidden", "", "a b", "ä", "x" * 101, "a%2e", "a\\b", "a#b"):
        assert slug(name).startswith("x-")
        assert slug(name).removeprefix("x-").isalnum()


def test_every_run_has_a_page_with_its_own_rows(case: Case, some: Case, pages: dict[str, Page]) -> None:
    assert sum("/runs/" in name for name in pages) == len(case.study.rows("runs"))
    (name, *_) = (name for name in pages if "/runs/" in name)
    published, mine = page_of(Material((case,)), name), page_of(Material((some,)), PAGE)
    assert "episodes" not in published.ids
    assert "training" not in mine.ids  # nothing of its groups was counted, and no luck share diagnosed
    assert "episodes" in mine.ids
    assert "#phase=periodic&pool=validation&regime=faults_p025" in mine.links


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
    rows = seed_rows(some, some.book.endpoints["c4_auc"])
    assert all(arm["run"] == "" and "was not run" in arm["missing"] for row in rows for arm in row["arms"])
    assert {row["value"] for row in rows} == {None}


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


def test_a_trajectory_is_the_run_that_an_amendment_names_unless_two_fit(case: Case) -> None:
    """The published amendment A1: trajectory A is the gate-1 run, trajectory B is C2 paired seed 1."""
    named = {key: run for key, run in runs_of_trajectories(case).items() if key != run}
    assert named == {"A": "gate1-c2-paired-s0", "B": "t1-c2-paired-s1"}
    changes = ("Trajectory A is the t1 run.", "Trajectory B is C2 paired seed 1.", "Trajectory C is C9.")
    amendment = replace(case.registration.amendments[0], changes=changes)
    told = replace(case, registration=replace(case.registration, amendments=(amendment,)))
    named = {key: run for key, run in runs_of_trajectories(told).items() if key != run}
    assert named == {"B": "t1-c2-paired-s1"}


CALL = {"tool": "get_order", "arguments": {"order": "O-1"}, "key": ["get_order", "O-1", 0], "charged": True}
CALL |= {"fault": "outage", "blocked_by": None, "answer": {"text": "z" * 9000}}
DOCUMENT = {"phase": "final", "pool": "test", "regime": "faults_p025", "step": 100, "task": 3, "schedule": 1}
DOCUMENT |= {
    "schedule_seed": "18446744073709551615",
    "prompt": HOSTILE,
    "true_success": False,
    "calls": [CALL],
}
DOCUMENT |= {"observed_reward": 0, "ended": "budget", "calls_charged": 1, "budget": 9, "differences": [{}]}


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


def test_a_run_names_its_own_files_alone(tiny: Case) -> None:
    files = run.files_by_run(tiny.study)
    for row in tiny.study.rows("runs"):
        (file,) = (file for file in files[row["run_id"]] if file.table == "episodes")
        assert file.is_carried
        assert file.name == f"episodes/{row['run_id']}.parquet"
        assert file.sha256 == tiny.study.files("episodes")[file.name]


LAST, TAKEN_UP = 50, 20
COLUMN = {"Loss": "loss", "Gradient norm": "grad_norm", "Entropy": "entropy"}
COLUMN |= {"Share of tokens clipped": "clipped", "Importance weight": "importance_weight_mean"}
COLUMN |= {"Seconds a step": "seconds"}


def step_row(step: int) -> dict[str, Any]:
    row = {"step": step, "loss": None if step in (7, 30, 32) else 0.01 * sin(1.7 * step), "clipped": 0.0}
    row |= {"grad_norm": 0.3 + 0.2 * sin(step) ** 2, "entropy": 0.5 - step / 200}
    weights = {"mean": 1.0, "min": 1 / 3, "max": 2.0}
    return row | {f"importance_weight_{w}": by * (1 + 0.1 * sin(step)) for w, by in weights.items()}


def launch_row(attempt: int, first: int, last: int) -> dict[str, Any]:
    seconds = [10.0 * attempt + 5 * sin(step) for step in range(first, last)]
    made = {"step_seconds": seconds, "generation_seconds": [0.7 * number for number in seconds]}
    return {"attempt": attempt, "from_step": first, **made}


def test_every_drawn_number_of_a_step_is_its_rows_and_the_words_are_made_of_them() -> None:
    rows = [step_row(step) for step in range(1, LAST + 1)]
    # The second attempt takes the run up at a step that the first one had reached, and counts.
    launches = [launch_row(2, TAKEN_UP, LAST), launch_row(1, 0, TAKEN_UP + 5)]
    seconds = [*launches[1]["step_seconds"][:TAKEN_UP], *launches[0]["step_seconds"]]
    whole = [{**row, "seconds": taken} for row, taken in zip(rows, seconds, strict=True)]
    charts = {re.split("[:,]", c.title)[0]: c for c in run.steps_shown(rows[::-1], launches)["step_charts"]}
    assert charts.keys() == COLUMN.keys()
    for what, chart in charts.items():
        assert (chart.columns[0], chart.narrow) == ("step", "")
        found = re.findall(r'data-row="([^"]*)"', chart.wide)
        drawn = [tuple(map(float, row.split(","))) for rows in found for row in rows.split("\n")]
        values = [(row["step"], row[COLUMN[what]]) for row in whole if row[COLUMN[what]] is not None]
        assert drawn == values, what
        assert ('class="band"' in chart.wide) == (what in ("Importance weight", "Seconds a step"))
    assert charts["Seconds a step"].title.startswith("Seconds a step, 70% in rollouts: ")
    means = (f"{rows[at]['importance_weight_mean']:.3g}" for at in (0, -1))
    assert "mean: {} at step 1, {} at step 50".format(*means) in charts["Importance weight"].title
    assert "from the least to the greatest weight, 0.3 to 2.2." in charts["Importance weight"].caption
    assert charts["Loss"].caption.endswith("No number at 3 steps: 7, 30, 32.")
    assert "greatest 0.495 at step 1" in charts["Entropy"].caption


def test_a_run_of_one_step_and_one_without_numbers_are_drawn() -> None:
    (entropy,) = training_steps([{"step": 1, "entropy": 0.5}])
    assert entropy.title == "Entropy, nats a token: 0.5 at step 1"
    assert "<svg" in entropy.svg
    assert training_steps([{"step": 1, "entropy": None}]) == []
