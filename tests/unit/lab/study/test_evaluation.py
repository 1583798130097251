"""An evaluation in a folder: kept block by block, gone on with, refused where it is another's; registers."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import snapshot
from tests.unit.lab.evaluation.test_language_model import Mute
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.estimators import luck_share_interval
from toolkit.lab import evaluating
from toolkit.lab.evaluating import (
    EvaluatedBlocks,
    EvaluationFolder,
    Measure,
    Request,
    figures,
    identity,
    jobs,
    luck_shares,
    study_name,
    write_registers,
)
from toolkit.lab.evaluation.sets import EvaluationSet
from toolkit.lab.executors.executor import Executor
from toolkit.lab.policies.language_model.opening import Opening, identify
from toolkit.registers.arrow import Row
from toolkit.registers.query import ask
from toolkit.registers.row_tables import FAULTS
from toolkit.registers.study import Study, open_study, verify_study
from toolkit.seeds import sample_seed, sampling_seed, shared_seed
from toolkit.structs import replace

OPENING = Opening("scripted", "reference")
ASKED = Request(("clean", "faults_p025", "challenge"), tasks=4, schedules=2)
QUICK = Request(("clean", "faults_p025"), tasks=10, schedules=1, luck_share=False)
POOLS = {"test": "a" * 64}


def folder(path: Path, opening: Opening = OPENING, asked: Request = ASKED) -> EvaluationFolder:
    return EvaluationFolder(path, identity(identify(opening), asked, POOLS))


def play(path: Path, asked: Request = ASKED, **how: Any) -> EvaluatedBlocks:
    there = folder(path, asked=asked)
    with there.held():
        return there.play(OPENING, asked, Executor(**({"places": 1} | how)))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> EvaluatedBlocks:
    return play(tmp_path_factory.mktemp("evaluation"))


@pytest.fixture(scope="module")
def study(played: EvaluatedBlocks, tmp_path_factory: pytest.TempPathFactory) -> Study:
    there = tmp_path_factory.mktemp("registers") / "reference"
    write_registers(there, "reference", folder(there).identity, played.rows)
    return open_study(there)


def test_the_luck_share_is_measured_where_schedules_differ() -> None:
    asked = Request(("clean", "faults_p010", "challenge", "flips_q005", "held_out_types"))
    assert asked.evaluation("faults_p010") == EvaluationSet("final", "test", "faults_p010", 200, 4)
    assert asked.evaluation("challenge") == EvaluationSet("final", "test", "challenge", 200, 1)
    assert asked.diagnosed == ("faults_p010", "flips_q005", "held_out_types")
    assert replace(asked, luck_share=False).diagnosed == ()


def test_the_order_in_which_jobs_are_done_leaves_no_trace(tmp_path: Path, played: EvaluatedBlocks) -> None:
    assert play(tmp_path, places=2).rows == played.rows


def test_own_and_shared_samples_are_not_mixed(tmp_path: Path) -> None:
    shared = replace(QUICK, sampling="shared")
    for begun, then in ((QUICK, shared), (shared, QUICK)):
        there = tmp_path / begun.sampling
        play(there, begun)
        with pytest.raises(UsageError, match="own and shared ones are not mixed") as raised:
            play(there, then)
        assert (raised.value.expected, raised.value.found) == (
            f'sampling "{begun.sampling}"',
            f'sampling "{then.sampling}"',
        )
        first = jobs(OPENING, QUICK)[0].name
        (tmp_path / "own" / "blocks" / first).write_bytes((there / "blocks" / first).read_bytes())
    with pytest.raises(DamagedError, match="belongs to another evaluation"):
        play(tmp_path / "own", QUICK)


def test_the_shared_samples_of_a_set_know_no_model_and_the_diagnostic_has_its_own(monkeypatch) -> None:
    asked = Request(("clean", "faults_p025"), tasks=2, schedules=2, sampling="shared", seed=3)
    seeds: dict[str, list[list[int]]] = {}
    for model in ("one", "other"):
        engine = Mute()
        monkeypatch.setattr(evaluating, "open_engine", lambda _, engine=engine: engine)
        for job in jobs(Opening("transformers", model), asked):
            evaluating.perform(job)
        seeds[model] = engine.seeds
    assert seeds["one"] == seeds["other"]
    clean, noisy, *tables = seeds["one"]
    at = [(f"test:{task}", schedule, 0) for task in range(2) for schedule in range(2)]
    assert clean == [shared_seed("toolkit evaluate 3", "final/clean", place) for place in at]
    assert noisy == [shared_seed("toolkit evaluate 3", "final/faults_p025", place) for place in at]
    own = sampling_seed("toolkit evaluate", "faults_p025", 3)
    assert tables[0][0] == sample_seed(own, 0, "diagnostic", ("diagnostic:0", 0, 0))


def test_a_folder_takes_further_sets(tmp_path: Path) -> None:
    few = replace(ASKED, regimes=("clean",))
    play(tmp_path, few)
    more = play(tmp_path, replace(few, regimes=("clean", "challenge"), schedules=2))
    assert (more.kept, more.played) == (1, 1)


def test_a_damaged_block_is_kept_aside_and_played_again(tmp_path: Path) -> None:
    whole = play(tmp_path, QUICK).rows
    name = jobs(OPENING, QUICK)[0].name
    block = tmp_path / "blocks" / name
    block.write_bytes(block.read_bytes()[:-20])
    messages: list[str] = []
    assert play(tmp_path, QUICK, say=messages.append).rows == whole
    assert messages == [f"{name} was cut short or changed; kept as {name}.damaged-1, and played again"]


def test_a_block_of_another_place_or_model_is_refused(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    play(mine, QUICK)
    other = Opening("scripted", "careless")
    with folder(theirs, other).held():
        folder(theirs, other).play(other, QUICK)
    first, second = (job.name for job in jobs(OPENING, QUICK)[:2])
    for foreign in (mine / "blocks" / second, theirs / "blocks" / first):
        (mine / "blocks" / first).write_bytes(foreign.read_bytes())
        with pytest.raises(DamagedError, match="belongs to another evaluation"):
            play(mine, QUICK)


def test_a_folder_of_another_model_is_refused_and_left_alone(tmp_path: Path) -> None:
    play(tmp_path, QUICK)
    before = snapshot(tmp_path)
    with pytest.raises(UsageError, match="another policy") as raised:
        folder(tmp_path, Opening("scripted", "careless")).held().__enter__()
    assert (raised.value.expected, raised.value.found) == ('model "reference"', 'model "careless"')
    with pytest.raises(UsageError, match="another policy"):
        play(tmp_path, replace(QUICK, seed=1))
    with folder(tmp_path).held(), pytest.raises(UsageError, match="another command is at work"):
        play(tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("text", ["", "[]", None])
def test_a_folder_that_does_not_say_whose_it_is_is_left_alone(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "evaluation.json" if text is not None else tmp_path / "thesis.tex").write_text(text or "")
    before = snapshot(tmp_path)
    with pytest.raises((DamagedError, IncompleteError), match=r"evaluation\.json|nothing says of which"):
        play(tmp_path, QUICK)
    assert snapshot(tmp_path) == before


def test_the_registers_are_a_study_that_verifies(study: Study, played: EvaluatedBlocks) -> None:
    rows = verify_study(study)
    assert (rows["runs"], rows["evaluations"]) == (3, 3)
    assert (rows["episodes"], rows["luck_share"]) == (20, 32)
    assert study.manifest.words == {"arm": ("evaluated",)}
    assert study.manifest.registration.name == "unregistered"
    assert {row["policy"] for row in study.rows("luck_share_summary")} == {"reference"}
    (counted,) = ask(study, "SELECT sum(true_success::INT) FROM episodes WHERE regime = 'faults_p025'").rows
    expected = [row["true_success"] for row in played.rows["episodes"] if row["regime"] == "faults_p025"]
    assert counted == (sum(expected),)


def row(task: int, *, success: bool, calls: int = 3, transient: int = 0) -> Row:
    return {
        "regime": "faults_p025",
        "pool": "test",
        "task": task,
        "true_success": success,
        "observed_reward": success,
        "calls": calls,
        "ended": "finished",
        **dict.fromkeys(FAULTS, 0),
        "transient": transient,
    }


def test_figures_are_means_over_episodes() -> None:
    rows = [row(0, success=True), row(0, success=False, calls=5), row(1, success=True, transient=2)]
    (figure,) = figures({"episodes": [*rows, row(1, success=True)]})
    estimates = {name: getattr(figure, name).estimate for name in ("success", "observed", "calls", "exposed")}
    assert estimates == {"success": 0.75, "observed": 0.75, "calls": 3.5, "exposed": 0.25}
    assert (figure.tasks, figure.episodes, figure.ended) == (2, 4, {"finished": 4})


def test_intervals_resample_tasks_not_episodes() -> None:
    """Of two tasks, one always solved and one never, a resample has 0, 1 or 2 of the first."""
    rows = [row(task, success=task == 0) for task in range(2) for _ in range(50)]
    (figure,) = figures({"episodes": rows})
    assert (figure.success.low, figure.success.high) == (0.0, 1.0)
    (figure,) = figures({"episodes": rows[:1]})
    assert figure.success == Measure(1.0, None, None, 0.95)


def test_the_luck_share_has_the_registered_interval(played: EvaluatedBlocks) -> None:
    rows = played.rows["luck_share"]
    tables = [[r["true_successes"] for r in rows if r["task"] == task] for task in range(4)]
    expected = luck_share_interval(tables, 10_000, 0, 0.95)
    share = next(share for share in luck_shares(played.rows) if share.target == "true_success")
    assert expected is not None
    assert share.luck_share == expected.estimate
    assert (share.low, share.high) == (expected.low, expected.high)


def test_a_reward_that_never_varies_has_no_luck_share() -> None:
    there = {"regime": "flips_q010", "pool": "diagnostic", "step": 0, "task": 0}
    rows = [
        {**there, "schedule": n, "true_successes": [True] * 8, "observed_rewards": [n > 0] * 8}
        for n in range(8)
    ]
    never, always = luck_shares({"luck_share": rows})
    assert (never.luck_share, never.low, never.tasks_defined) == (None, None, 0)
    assert always.luck_share == 1.0


@pytest.mark.parametrize(
    ("model", "name"),
    [("Qwen/Qwen3.5-2B", "Qwen3-5-2B"), ("/models/mine/", "mine"), ("…", "model"), ("x" * 99, "x" * 64)],
)
def test_a_study_has_a_name_that_a_study_can_have(model: str, name: str) -> None:
    assert study_name(model) == name
