"""Runs that train nothing: they evaluate checkpoints of another study, the registered ones and no others."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.described import SOURCE
from tests.unit.lab.study.changed import Changed
from tests.unit.lab.study.fake_play import specification
from tests.unit.lab.study.small_study import Specified
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.executors.executor import Executor
from toolkit.lab.play.assemble import assemble, seal
from toolkit.lab.play.rows import checkpoints_sha256, given_by
from toolkit.lab.play.runner import play_runs
from toolkit.lab.play.segments import play_segment
from toolkit.lab.play.workplace import Workplace
from toolkit.lab.task_pools import summarize
from toolkit.lab.verification.comparison import play_again
from toolkit.lab.verification.replay import Replayer, audit
from toolkit.registers.manifest import RegistrationRef
from toolkit.registers.study import Study, open_study
from toolkit.specification import Specification
from toolkit.structs import replace
from toolkit.verification import registered, steps

ARMS = ("paired", "independent")
REFERENCE = RegistrationRef("small", "f" * 64, {})
HOW: dict[str, Any] = {"battery": "curve", "diagnosed": (), "surface_tokens": 2, "learning_rate": "0.1"}
pytestmark = pytest.mark.usefixtures("few")


def sealed(folder: Path, name: str, runs: tuple[Specification, ...], **how: Any) -> Study:
    """Play runs for real, and write their study."""
    workplace = Workplace(folder / f"{name}-runs")
    with workplace.held(runs):
        play_runs(workplace, runs, Executor(places=1), **how)
    seal(folder / name, name, REFERENCE, assemble(workplace, runs, lambda _: None), SOURCE)
    return open_study(folder / name)


@pytest.fixture(scope="module")
def trained(few: int, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study of two runs that train for four steps."""
    runs = tuple(specification(f"c2-{arm}-s0", arm=arm, pools={}, **HOW) for arm in ARMS)
    return sealed(tmp_path_factory.mktemp("trained"), "trained", runs)


@pytest.fixture(scope="module")
def runs(trained: Study) -> tuple[Specification, ...]:
    """The runs that evaluate their checkpoints, with shared samples."""
    pools = {"validation": summarize("validation").sha256}
    specifications = []
    for arm in ARMS:
        name = f"c2-{arm}-s0"
        held = [(row["step"], row["sha256"]) for row in trained.rows("checkpoints") if row["run_id"] == name]
        digest = sha256("".join(f"{step} {sha}\n" for step, sha in held).encode()).hexdigest()
        checkpoints = {"study": "trained", "run": name, "sha256": digest}
        place = {"run_id": f"c9-{arm}-s0", "condition": "C9", "arm": arm, "study": "evaluated"}
        specifications.append(
            specification(checkpoints=checkpoints, sampling="shared", pools=pools, **place, **HOW)
        )
    return tuple(specifications)


@pytest.fixture(scope="module")
def evaluated(
    trained: Study, runs: tuple[Specification, ...], tmp_path_factory: pytest.TempPathFactory
) -> Study:
    given = given_by(runs, lambda _: trained)
    return sealed(tmp_path_factory.mktemp("evaluated"), "evaluated", runs, given=given)


@pytest.fixture
def check(
    runs: tuple[Specification, ...], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Any], dict[str, int]]]:
    """Return what verifies a study whole, these runs being the registered ones."""
    for module in (registered, steps):
        monkeypatch.setattr(module, "runs_of", lambda *_: Specified(runs))
    monkeypatch.setattr(steps, "check_files", lambda _: None)
    monkeypatch.setattr(steps, "check_tables", lambda study, _: {"runs": len(study.rows("runs"))})
    return lambda study: steps.check_study(steps.Checked(study, None)).rows


def test_a_study_that_trains_nothing_has_evaluations_and_the_checkpoints_that_it_evaluated(
    evaluated: Study, trained: Study, check: Any, few: int
) -> None:
    assert check(evaluated) == {"runs": 2}
    absent = ("groups", "groups_summary", "luck_share", "luck_share_summary")
    assert not [name for name in absent if evaluated.has(name)]
    mine, theirs = (study.rows("checkpoints") for study in (evaluated, trained))
    assert [{**row, "run_id": row["run_id"].replace("c9", "c2")} for row in mine] == theirs
    for row in evaluated.rows("runs"):
        assert (row["status"], row["training_groups"], row["training_rollouts"]) == ("COMPLETE", 0, 0)
        assert row["episodes"] == 3 * few * 2
    assert {row["pool"] for row in evaluated.rows("task_pools")} == {"validation"}


def test_what_is_evaluated_is_the_checkpoint_of_the_step(evaluated: Study, trained: Study) -> None:
    """Untrained policies are alike, and with shared samples so are their episodes; trained ones differ."""

    def episodes(arm: str, step: int) -> list[Any]:
        wanted = (f"c9-{arm}-s0", step)
        rows = [row for row in evaluated.rows("episodes") if (row["run_id"], row["step"]) == wanted]
        return [{name: row[name] for name in row if name != "run_id"} for row in rows]

    assert episodes("paired", 0) == episodes("independent", 0) != []
    assert episodes("paired", 4) != episodes("independent", 4)


def test_another_checkpoint_than_registered_stops_a_study_before_anything_is_played(trained, runs) -> None:
    rows = [dict(row) for row in trained.rows("checkpoints")]
    rows[-1]["sha256"] = "0" * 64
    other: Any = Changed(trained, {"checkpoints": rows})
    with pytest.raises(DamagedError, match="not those that c9-paired-s0 was registered to evaluate"):
        given_by(runs, lambda _: other)
    longer = [replace(run, steps=6) for run in runs]
    with pytest.raises(DamagedError, match="at other steps") as error:
        given_by(longer, lambda _: trained)
    assert (error.value.expected, error.value.found) == ("0, 2, 4, 6", "0, 2, 4")
    elsewhere = replace(runs[0], checkpoints={**runs[0].checkpoints, "run": "c2-paired-s7"})
    with pytest.raises(IncompleteError, match="not here") as lacking:
        given_by([elsewhere], lambda _: trained)
    assert lacking.value.expected == "checkpoints of run c2-paired-s7"


@pytest.mark.parametrize("given", [None, 2])
def test_a_worker_that_was_handed_no_checkpoint_or_another_plays_nothing(trained, runs, given) -> None:
    handed = given if given is None else given_by(runs, lambda _: trained)(runs[0], given)
    with pytest.raises(DamagedError, match="was not handed what it evaluates"):
        play_segment(runs[0], 4, handed)


def test_a_copy_that_was_changed_is_damage(evaluated: Study, check: Any) -> None:
    """The digest of a copy is the registered one, whatever the row says of itself."""
    rows = [dict(row) for row in evaluated.rows("checkpoints")]
    rows[1], rows[2] = ({**rows[2], "step": rows[1]["step"]}, {**rows[1], "step": rows[2]["step"]})
    with pytest.raises(DamagedError, match="was registered to evaluate"):
        check(Changed(evaluated, {"checkpoints": rows}))


def test_its_rows_are_replayed_and_audited(evaluated: Study, runs: tuple[Specification, ...]) -> None:
    audited = audit(evaluated, 12, 3, {run.run_id: run for run in runs}, lambda *_: None)
    assert audited.sampled == {"episodes": 6, "groups": 0, "luck_share": 0, "checkpoints": 6, "probe_gram": 0}
    replayer = Replayer(evaluated, runs[0].run_id)
    assert replayer.evaluated("periodic", "faults_p025", 4, 7, 1).trace is not None
    with pytest.raises(UsageError, match="trains nothing"):
        replayer.rollout(1, 0, 0)


def test_a_replay_holds_the_copies_against_their_digest(evaluated, runs, monkeypatch) -> None:
    other = replace(runs[0], checkpoints={**runs[0].checkpoints, "sha256": "0" * 64})
    monkeypatch.setattr("toolkit.lab.verification.replay.specification_of", lambda *_: other)
    with pytest.raises(DamagedError, match="registered to evaluate"):
        Replayer(evaluated, runs[0].run_id)


def test_it_is_played_again_from_its_own_copies(evaluated: Study, runs: tuple[Specification, ...]) -> None:
    compared = play_again(evaluated, runs[:1], REFERENCE, Executor(places=1), is_everything=False)
    assert {"checkpoints", "episodes", "evaluations", "runs"} <= set(compared)


def test_a_digest_is_of_steps_and_digests_in_order_of_steps() -> None:
    expected = sha256(b"0 aa\n20 bb\n").hexdigest()
    assert checkpoints_sha256([(20, "bb"), (0, "aa")]) == expected
    assert checkpoints_sha256([(20, "aa"), (0, "bb")]) != expected
