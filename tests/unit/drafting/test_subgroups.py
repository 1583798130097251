"""An endpoint on the tasks that an attribute chooses: their episodes alone count, and nothing else does."""

import json
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from scipy import stats

from tests.conftest import CHECKOUT, run
from tests.unit.drafting.conftest import Row, decided, draft, fill_in, write
from tests.unit.drafting.test_importing import ARMS, SEEDS, TASKS, episodes, imported
from tests.unit.site import test_decide_in_node as in_node
from toolkit.errors import DamagedError
from toolkit.places import HOME_VARIABLE
from toolkit.registers.schema import TABLES
from toolkit.registers.validation import check_rows

HARD, EASY = 7, 5
ENDPOINT = (CHECKOUT / "tests/fixtures/rules/of_hard_tasks.toml").read_text(encoding="utf-8")


def is_hard(row: Row) -> bool:
    return int(row["task"][1:]) < HARD


def log(seed: int = 1) -> list[Row]:
    """Return a log in which the first seven tasks are hard, and the careful arm solves most of those."""
    rows = episodes(seed)
    for row in rows:
        hard = is_hard(row)
        row["level"] = "Hard!" if hard else "easy"
        number = int(row["task"][1:])
        row["success"] = (
            (number + row["seed"]) % 5 != 0 if hard and row["strategy"] == "careful" else number == 8
        )
    return rows


@pytest.fixture(scope="module")
def at() -> Iterator[Callable[[Path], Path]]:
    """Return what has commands run in a folder."""
    with pytest.MonkeyPatch.context() as patch:

        def enter(folder: Path) -> Path:
            patch.setenv(HOME_VARIABLE, str(folder))
            patch.chdir(folder)
            return folder

        yield enter


@pytest.fixture(scope="module")
def drafted(at: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study begun with an attribute that is called otherwise than its column, made once."""
    folder = at(tmp_path_factory.mktemp("drafted"))
    draft(folder, log(), "plain", "--attribute", "level", left_out=["score"])
    attributes = ("[attributes]\nlevel =", "[attributes]\ndifficulty =")
    fill_in(folder, attributes, ("[values.level]", "[values.difficulty]"), ('"Hard"', '"hard"'))
    with (folder / "prereg/mine/rules.toml").open("a", encoding="utf-8") as rules:
        rules.write(ENDPOINT)
    return folder


@pytest.fixture
def project(at: Callable[[Path], Path], drafted: Path, tmp_path: Path) -> Path:
    return at(shutil.copytree(drafted, tmp_path / "home"))


@pytest.fixture(scope="module")
def _decided(at: Callable[[Path], Path], drafted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study with its whole log imported, made once."""
    folder = at(shutil.copytree(drafted, tmp_path_factory.mktemp("decided") / "home"))
    begun(folder)
    done = imported(folder, log())
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def study(at: Callable[[Path], Path], _decided: Path) -> Path:
    return at(_decided)


def begun(project: Path, *changes: tuple[str, str]) -> None:
    fill_in(project, *changes)
    done = run("freeze", "mine", "--demonstration")
    assert done.code == 0, done.err


def lacking() -> list[Row]:
    """Return the log without one outcome of a hard task: a twelfth of all, a seventh of those."""
    return [row | ({"success": ""} if (row["task"], row["seed"]) == ("t2", 0) else {}) for row in log()]


def differences(rows: list[Row]) -> dict[str, list[int]]:
    """Return careful minus plain of each hard task, by seed."""
    won = {(row["strategy"], row["seed"], row["task"]): row["success"] for row in rows}
    return {
        str(seed): [won["careful", seed, f"t{task}"] - won["plain", seed, f"t{task}"] for task in range(HARD)]
        for seed in range(SEEDS)
    }


def test_a_new_study_writes_the_attribute_of_a_column(project: Path) -> None:
    rules = (project / "prereg/mine/rules.toml").read_text(encoding="utf-8")
    assert '[attributes]\ndifficulty = ["hard", "easy"]' in rules
    assert "#   tasks = 7\n" in rules
    mapping = (project / "mappings/mine.toml").read_text(encoding="utf-8")
    assert '[attributes]\ndifficulty = "level"\n' in mapping
    assert '[values.difficulty]\n"Hard!" = "hard"\n' in mapping


def test_an_endpoint_on_some_tasks_is_their_episodes_mean_and_interval(study: Path) -> None:
    decision, expected = decided("H2"), differences(log())
    assert decision["estimate"]["by_seed"] == {
        seed: round(float(Fraction(sum(of), HARD)), 5) for seed, of in expected.items()
    }
    tasks = [sum(of) / SEEDS for of in zip(*expected.values(), strict=True)]
    interval = stats.ttest_1samp(tasks, 0).confidence_interval()
    made = decision["interval"]
    assert (made["low"], made["high"]) == pytest.approx((interval.low, interval.high), abs=1e-12)
    # All seven differences are positive: two of 128 choices of signs are as extreme.
    assert min(tasks) > 0
    (test,) = decision["tests"]
    assert (test["n"], test["differing"], test["p"]) == (7, 7, "1/64")
    assert decision["verdict"] == "pass"
    whole = decided()["estimate"]["by_seed"]
    assert whole == {seed: round(float(Fraction(sum(of), TASKS)), 5) for seed, of in expected.items()}


def test_a_decision_names_the_files_that_chose_the_tasks(study: Path) -> None:
    read = {one["config"]: one for one in decided("H2")["registers"]}
    assert set(read) == {"runs", "evaluations", "episodes", "task_pools"}
    assert list(read["task_pools"]["files"]) == ["task_pools/tasks-00000-of-00001.parquet"]
    assert "task_pools" not in {one["config"] for one in decided()["registers"]}


def test_the_sql_of_an_endpoint_gives_the_counts_that_it_is_measured_on(study: Path) -> None:
    (explained,) = run("explain", "H2", "--study", "mine", "--json").json()
    (endpoint,) = explained["endpoints"]
    rows = run("sql", endpoint["rows"], "--study", "mine", "--json").json()
    won = {(row["arm"], row["seed"]): (row["successes"], row["episodes"]) for row in rows}
    expected = {
        (arm, seed): (
            sum(r["success"] for r in log() if is_hard(r) and (r["strategy"], r["seed"]) == (arm, seed)),
            HARD,
        )
        for arm in ARMS
        for seed in range(SEEDS)
    }
    assert won == expected


def test_a_page_decides_again_on_the_episodes_of_some_tasks(study: Path) -> None:
    assert run("site", "build").code == 0
    (page,) = (study / "site").rglob("H2.html")
    text = page.read_text(encoding="utf-8")
    assert "difficulty=hard, 7 tasks" in text
    said = json.loads(text.partition('class="decide-evidence">')[2].partition("</script>")[0])
    (reached,) = in_node.decided(study / "site", {"said": said, "choice": {}})
    assert (reached["verdict"], reached["disagreements"]) == (said["recorded"]["H2"]["verdict"], [])


def test_what_is_missing_or_left_out_counts_by_the_tasks_that_are_meant(project: Path) -> None:
    begun(project, ('counts_as = "failure"\nmost = "0.05"', 'counts_as = "excluded"\nmost = "0.15"'))
    done = imported(project, lacking())
    assert done.code == 0, done.err
    kept = {seed: (sum(of), HARD) for seed, of in differences(log()).items()}
    kept["0"] = kept["0"][0] - differences(log())["0"][2], HARD - 1
    assert decided("H2")["estimate"]["by_seed"] == {
        seed: round(float(Fraction(*of)), 5) for seed, of in kept.items()
    }


def test_more_missing_among_some_tasks_than_registered_leaves_them_undecided(project: Path) -> None:
    begun(project, ('most = "0.05"', 'most = "0.1"'))
    assert imported(project, lacking()).code == 0
    assert decided()["verdict"] != "not_evaluable"
    assert decided("H2")["verdict"] == "not_evaluable"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: row | ({"level": "easy"} if row["task"] == "t0" else {}), "expected 7 tasks with"),
        (lambda row: row | {"level": "easy"}, "found 0"),
    ],
    ids=["another size", "none"],
)
def test_a_subgroup_of_another_size_is_not_decided(project, change, reason) -> None:
    begun(project)
    done = imported(project, [change(row) for row in log()])
    assert done.code == 0, done.err
    assert decided("H2")["verdict"] == "not_evaluable"
    assert reason in run("decide", "H2", "--study", "mine").out
    assert decided()["verdict"] in {"pass", "miss"}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            lambda rows: [*rows[:-1], rows[-1] | {"level": "Hard!"}],
            """'t11' of pool 'tasks': '{"difficulty":"easy"}' in row 12; '{"difficulty":"hard"}' in row 72""",
        ),
        (lambda rows: [*rows[:-1], rows[-1] | {"level": "odd"}], "'odd' in row 72"),
        (lambda rows: [*rows[:-1], rows[-1] | {"level": ""}], "nothing in row 72"),
    ],
    ids=["two values", "no word", "empty"],
)
def test_a_log_that_says_no_one_declared_word_of_a_task_is_refused(project, change, found) -> None:
    begun(project)
    imported(project, change(log())).refused(4, found)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ('difficulty = "level"', 'topic = "level"', "topic"),
        ('[attributes]\ndifficulty = "level"\n', "", "none"),
        ('[attributes]\ndifficulty = "level"\n', '[attributes]\nstep = "level"\n', "step"),
        ('difficulty = "level"', 'difficulty = "nowhere"', "nowhere"),
    ],
    ids=["another", "none", "a column's name", "a column that is not there"],
)
def test_a_mapping_gives_the_attributes_that_are_declared(project, old, new, found) -> None:
    begun(project)
    mapping = project / "mappings/mine.toml"
    text = mapping.read_text(encoding="utf-8").replace(old, new)
    if "difficulty" not in new:
        text = text.partition("\n# A word of the table")[0]
    mapping.write_text(text, encoding="utf-8")
    imported(project, log()).refused(4, found)


def test_power_refuses_a_rule_on_some_tasks(study: Path) -> None:
    run("power", "H2", "--study", "mine").refused(2, "reads some tasks of a set alone")


def test_a_rehearsal_fits_the_size_of_a_subgroup_to_the_pilot(project: Path) -> None:
    pilot = [row for row in log() if row["task"] not in {"t0", "t11"}]
    write(project / "smaller.csv", pilot, "score")
    done = run("rehearse", "mine", "smaller.csv", "--simulations", "0", "--json").json()
    assert "gap_hard: tasks 6 instead of 7" in done["fitted"]
    (decision,) = (one for one in done["decisions"] if one["rule"] == "H2")
    kept = {seed: sum(of[1:]) for seed, of in differences(log()).items()}
    assert decision["estimate"]["by_seed"] == {s: round(total / 6, 5) for s, total in kept.items()}


def test_a_pool_that_was_changed_is_noticed(at, study: Path, tmp_path: Path) -> None:
    copied = at(shutil.copytree(study, tmp_path / "home"))
    path = copied / "registers/mine/task_pools/tasks-00000-of-00001.parquet"
    pl.read_parquet(path).with_columns(pl.col("attributes").reverse()).write_parquet(path)
    for command in (("registers", "verify"), ("decide", "H2")):
        run(*command, "--study", "mine").refused(4, "task_pools")


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (['{"a":"x"}', '{"b":"x"}'], "other names than the first row"),
        (['{"a":"x"}', '{"a": "x"}'], "no canonical JSON"),
        (['{"a":"x"}', '{"a":1}'], "no canonical JSON"),
        (['{"a":"x"}', '["a"]'], "no canonical JSON"),
        (['{"a":"x"}', '{"a":'], "no canonical JSON"),
        (['{"a":"x"}', '{"b":"x","a":"x"}'], "no canonical JSON"),
    ],
)
def test_attributes_are_canonical_texts_of_the_same_names(texts: list[str], problem: str) -> None:
    pools = {"task_pools": TABLES["task_pools"].with_words({"pool": ("p",)})}

    def check(said: list[str]) -> None:
        rows = {"pool": ["p"] * 2, "index": [0, 1], "task_id": ["t", "u"], "attributes": said}
        frame = pl.DataFrame(rows).with_columns(pl.col("index").cast(pl.Int32))
        check_rows({"task_pools": frame.to_arrow()}, pools)

    check([texts[0], texts[0]])
    with pytest.raises(DamagedError, match=problem):
        check(texts)


def test_a_rehearsal_names_a_subgroup_that_the_pilot_leaves_empty(project: Path) -> None:
    write(project / "easy.csv", [row | {"level": "easy"} for row in log()], "score")
    for pilot, empty in (("easy.csv", True), ("pilot.csv", False)):
        problems = run("rehearse", "mine", pilot, "--simulations", "0", "--json").json()["problems"]
        said = "endpoints.gap_hard: no task of the pilot has difficulty=hard"
        assert (said in problems) == empty
