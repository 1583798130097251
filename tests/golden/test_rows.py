"""The studies of rows that are shipped: what their registers say, and that they fit together."""

from collections import Counter
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.conftest import CHECKOUT, Result
from tests.golden import measure_levels
from toolkit.estimators import mean_luck_share
from toolkit.lab.play.rows import rows_of_run
from toolkit.lab.policies.language_model.loading import model_path
from toolkit.lab.policies.language_model.opening import folder_sha256
from toolkit.places import Home
from toolkit.prereg.registration import load_registration
from toolkit.registers.study import Study, open_study
from toolkit.verification.registered import open_case


class Shipped(NamedTuple):
    """What is expected of a study: its rules, its runs, and pairs of runs that differ in the design alone."""

    rules: int
    roles: dict[str, int]
    pairs: tuple[str, ...]


STUDIES = {
    "embedded": Shipped(23 + 4, {"primary": 156, "reference": 2}, ("c2-{}-s2",)),
    "coupled": Shipped(9, {"primary": 240}, ()),
    "bfcl": Shipped(7, {"primary": 80}, ()),
    "map": Shipped(20, {"primary": 984}, ()),
    "small-lm": Shipped(9, {"primary": 40, "reference": 3}, ("c2-{}-s0", "c2-{}-s11", "c4-{}-s7")),
    "tiny-lm": Shipped(7, {"primary": 8}, ("c2-{}-s0", "c2-{}-s1", "c4-{}-s0", "c4-{}-s1")),
}
STARTS = {"small-lm": "small-soft", "tiny-lm": "small"}
PAIRS = [(name, pair) for name, study in STUDIES.items() for pair in study.pairs]
RUNS = [(name, pair.format(arm)) for name, pair in PAIRS for arm in ("paired", "independent")]


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    return {name: open_study(CHECKOUT / "registers" / name) for name in STUDIES}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in {"embedded", "map"} else ()) for name in STUDIES],
)
def test_every_registered_rule_is_decided(home: Home, studies: dict[str, Study], name: str) -> None:
    case = open_case(studies[name], load_registration(home.registration_folder(name)))
    verdicts = [decision.verdict for decision in case.decide_all()]
    assert not {"not_run", "not_evaluable"} & set(verdicts)
    assert len(verdicts) == STUDIES[name].rules


@pytest.mark.parametrize("name", STUDIES)
def test_the_matrix_was_played_whole_and_no_run_was_a_pilot(studies: dict[str, Study], name: str) -> None:
    runs = studies[name].rows("runs")
    assert {run["status"] for run in runs} == {"COMPLETE"}
    assert Counter(run["role"] for run in runs) == STUDIES[name].roles


@pytest.mark.parametrize("name", STUDIES)
def test_every_run_was_launched_after_the_freeze(toolkit: Callable[..., Result], name: str) -> None:
    (document,) = toolkit("verify-prereg", name, "--json").json()
    assert (document["verdict"], document["standing"]) == ("verified", "demonstration")
    assert document["chronology"]["verdict"] == "runs_after_freeze"
    assert document["chronology"]["runs_after"] == sum(STUDIES[name].roles.values())


@pytest.mark.parametrize(("name", "run"), RUNS)
def test_an_evaluation_is_the_sum_of_its_episodes(studies: dict[str, Study], name: str, run: str) -> None:
    counted: Counter[tuple[str, str, int]] = Counter()
    for row in rows_of_run(studies[name], "episodes", run):
        counted[row["phase"], row["regime"], row["step"]] += row["true_success"]
    rows = [row for row in studies[name].rows("evaluations") if row["run_id"] == run]
    assert counted == {(row["phase"], row["regime"], row["step"]): row["successes"] for row in rows}


@pytest.mark.parametrize(("name", "pair"), PAIRS)
def test_arms_of_one_seed_met_the_same_tasks(studies: dict[str, Study], name: str, pair: str) -> None:
    paired, independent = (
        rows_of_run(studies[name], "groups", pair.format(a)) for a in ("paired", "independent")
    )
    task_of = itemgetter("step", "position", "task")
    assert list(map(task_of, paired)) == list(map(task_of, independent))


@pytest.mark.parametrize(("name", "run"), RUNS)
def test_a_group_shares_its_schedule_where_paired(studies: dict[str, Study], name: str, run: str) -> None:
    shares = {len(set(row["schedule_seeds"])) == 1 for row in rows_of_run(studies[name], "groups", run)}
    assert shares == {"paired" in run}


@pytest.mark.parametrize(("name", "run"), [(name, run) for name, run in RUNS if name in STARTS])
def test_advantages_are_rewards_standardized_within_the_group(studies, name, run) -> None:
    rows = rows_of_run(studies[name], "groups", run)
    assert rows
    for row in rows:
        rewards = np.array(row["observed_rewards"], float)
        expected = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
        assert row["advantages"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("name", "model"), STARTS.items())
def test_every_run_started_from_the_model_that_lies_with_the_package(studies, name, model) -> None:
    commits = {run["model_commit"] for run in studies[name].rows("runs")}
    assert commits == {folder_sha256(Path(model_path(model)))}


def test_every_step_of_a_language_model_has_its_figures_and_its_seconds(studies: dict[str, Study]) -> None:
    study = studies["small-lm"]
    seconds = Counter({row["run_id"]: len(row["step_seconds"]) for row in study.rows("launches")})
    for run in study.rows("runs"):
        rows = rows_of_run(study, "steps", run["run_id"])
        assert [row["step"] for row in rows] == [*range(1, run["steps"] + 1)]
        teaching = {g["step"] for g in rows_of_run(study, "groups", run["run_id"]) if not g["zero_variance"]}
        assert {row["step"] for row in rows if row["grad_norm"]} == teaching
        assert all(row["entropy"] > 0 and row["clipped"] == 0 for row in rows)
        assert seconds[run["run_id"]] == run["steps"]


def test_a_luck_share_is_that_of_its_tables(studies: dict[str, Study]) -> None:
    at = ("c2-independent-s2", 100, "true_success")
    rows = [row for row in rows_of_run(studies["embedded"], "luck_share", at[0]) if row["step"] == at[1]]
    tables = [[row["true_successes"] for row in rows if row["task"] == task] for task in range(16)]
    summaries = studies["embedded"].rows("luck_share_summary")
    (summary,) = (row for row in summaries if (row["run_id"], row["step"], row["target"]) == at)
    assert summary["luck_share"] == mean_luck_share(tables).mean


def test_registers_of_tier_1_take_under_12_megabytes(studies: dict[str, Study]) -> None:
    tier_1 = {
        run["run_id"]
        for run in studies["embedded"].rows("runs")
        if run["condition"] in ("C0", "C2", "C4") and run["seed"] < 3 and "blocking" not in run["arm"]
    }
    sizes = {n: e.bytes for n, e in studies["embedded"].manifest.files.items() if not n.startswith("probe")}
    stems = {name: name.rpartition("/")[2].removesuffix(".parquet") for name in sizes}
    shared = {n for n, stem in stems.items() if stem.startswith(("train", "val", "test", "diag"))}
    assert sum(sizes[name] for name in sizes if name in shared or stems[name] in tier_1) < 12e6


def test_an_episode_takes_under_4_bytes_beside_its_seed(studies: dict[str, Study]) -> None:
    import pyarrow.parquet as pq

    embedded = studies["embedded"]
    total = rows = 0
    for name in embedded.manifest.tables["episodes"].files:
        described = pq.read_metadata(embedded.folder / name)
        groups = [described.row_group(number) for number in range(described.num_row_groups)]
        columns = [group.column(number) for group in groups for number in range(described.num_columns)]
        seeds = sum(c.total_compressed_size for c in columns if c.path_in_schema == "schedule_seed")
        total += embedded.manifest.files[name].bytes - seeds
        rows += described.num_rows
    assert total / rows < 4


def test_the_card_shows_the_levels_as_measured(studies: dict[str, Study]) -> None:
    assert measure_levels.table(studies["embedded"]) in measure_levels.CARD.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_run_comes_out_again(toolkit: Callable[..., Result]) -> None:
    command = "study run embedded --run c0-clean-s1 --check --processes 1 --json"
    document = toolkit(*command.split()).json()
    assert (document["verdict"], document["runs"]) == ("verified", ["c0-clean-s1"])


@pytest.mark.parametrize("name", STARTS)
def test_the_probe_s_figures_follow_from_its_evidence(toolkit: Callable[..., Result], name: str) -> None:
    assert toolkit("probe", "report", "--study", name, "--trajectory", "base", "--check").code == 0
