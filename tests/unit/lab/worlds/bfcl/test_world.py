"""BFCL as a world: its states, its grading beside the official checker, and its package."""

import copy
import pickle
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Toolkit
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.lab.policies.loglinear import ACTIONS, Action, Choice, Kind, Policy, Situation, untrained
from toolkit.lab.tasks.pools import FOREIGN
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds import foreign
from toolkit.lab.worlds.bfcl import world as bfcl
from toolkit.lab.worlds.bfcl.world import DECLARED, PACKAGE, Bfcl, BfclState, backends, read_call, scenarios
from toolkit.lab.worlds.world import play
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

CAREFUL: dict[Kind, Action] = {
    "read": "go",
    "write": "go",
    "transient": "retry",
    "rate_limit": "wait_as_told",
    "outage": "retry",
    "timeout": "reread",
    "truncated": "paginate",
    "stale": "reread",
    "dropout": "reread",
    "refused": "skip",
}
BLIND: dict[Kind, Action] = {**CAREFUL, "timeout": "retry"}
CARELESS: dict[Kind, Action] = {kind: "go" if "go" in ACTIONS[kind] else "skip" for kind in ACTIONS}


class Fixed(Policy):
    """A policy that does one thing in each kind of situation."""

    def __init__(self, does: dict[Kind, Action]) -> None:
        super().__init__(untrained(0), 0)
        self._does = does

    def action(self, situation: Situation) -> Choice:
        """Return a choice of the one action."""
        actions = ACTIONS[situation.kind]
        chosen = [float(action == self._does[situation.kind]) for action in actions]
        return Choice(situation, [()] * len(actions), chosen)


@cache
def world() -> Bfcl:
    return Bfcl()


def outcomes(world_name, regime, does) -> tuple[float, float]:
    """Return the shares of successes and of exposed episodes in the test pool, under two schedules."""
    episodes = [
        play(Fixed(does), task, REGIMES[regime], evaluation_seed(task, schedule), 0, world=world_name)[1]
        for task in (f"test:{index}" for index in FOREIGN[world_name]["test"])
        for schedule in range(2)
    ]
    exposed = sum(bool(episode.exposures) for episode in episodes)
    return sum(episode.true_success for episode in episodes) / len(episodes), exposed / len(episodes)


def test_pools_have_the_positions_that_the_study_knows_without_the_package() -> None:
    for pool in ("train", "validation", "test"):
        tasks = world().tasks(pool)
        turns = [task.index for task in tasks if "." in task.name]
        assert turns == list(FOREIGN["bfcl_turns"][pool])
        assert [task.index for task in tasks if "." not in task.name] == list(FOREIGN["bfcl_scenarios"][pool])


def _bare(state: BfclState) -> dict[str, Any]:
    """Return the whole state of every back-end but its hidden generator."""
    return {
        name: {key: value for key, value in vars(each).items() if key != "_random"}
        for name, each in state.instances.items()
    }


def test_kinds_are_what_carrying_out_every_call_of_the_answers_shows() -> None:
    changing: set[str] = set()
    twice: set[str] = set()
    called: Counter[str] = Counter()
    for scenario in scenarios():
        state = BfclState(scenario, keyed=False)
        for call in (call for plan in scenario.plans for call in plan):
            before = pickle.dumps(_bare(state))
            state.call(*call)
            called[call.tool] += 1
            if pickle.loads(before) != _bare(state):  # noqa: S301 - pickled above
                changing.add(call.tool)
                again = copy.deepcopy(state)
                again.call(*call)
                if _bare(again) != _bare(state):
                    twice.add(call.tool)
    declared = {name: tool for name, tool in DECLARED.tools.items() if tool.kind != "control"}
    assert called.keys() == declared.keys()
    assert changing == {name for name, tool in declared.items() if tool.kind == "write"}
    assert {name for name in changing if not declared[name].repeatable} >= twice - {"cd"}


def test_every_resource_is_an_argument_of_its_tool() -> None:
    import inspect

    for name, tool in DECLARED.tools.items():
        if tool.kind != "control" and tool.resource is not None:
            method = next(getattr(each, name) for each in backends().values() if hasattr(each, name))
            assert tool.resource in inspect.signature(method).parameters


@pytest.mark.parametrize("name", ["bfcl_turns", "bfcl_scenarios"])
@pytest.mark.parametrize("does", [CAREFUL, BLIND, CARELESS])
def test_without_noise_everyone_who_follows_the_answers_succeeds(name: str, does: dict[Kind, Action]) -> None:
    assert outcomes(name, "clean", does) == (1.0, 0.0)


def test_care_pays_under_faults_and_where_every_first_write_fails() -> None:
    careful, exposed = outcomes("bfcl_turns", "faults_p025", CAREFUL)
    careless, _ = outcomes("bfcl_turns", "faults_p025", CARELESS)
    assert 0.9 < careful < 0.97
    assert 0.62 < careless < 0.74
    assert 0.3 < exposed < 0.4
    assert outcomes("bfcl_turns", "challenge", CAREFUL)[0] == 1.0
    assert outcomes("bfcl_turns", "challenge", CARELESS)[0] < 0.5


def test_a_doubled_call_shifts_no_later_number() -> None:
    scenario = next(each for each in scenarios() if "VehicleControlAPI" in each.backends)
    once, doubled = BfclState(scenario), BfclState(scenario)
    assert doubled.call("get_current_speed", {}) != doubled.call("get_current_speed", {})
    outside = once.call("get_outside_temperature_from_google", {})
    assert doubled.call("get_outside_temperature_from_google", {}) == outside
    in_sequence = BfclState(scenario, keyed=False)
    in_sequence.call("get_current_speed", {})
    assert in_sequence.call("get_outside_temperature_from_google", {}) != outside


def test_what_earlier_turns_were_told_counts_as_shown() -> None:
    task = next(task for task in world().tasks("train") if task.name == "multi_turn_base_2.1")
    state = world().begin(task)
    told = [state.call(*call) for call in task.requests[0].plan]
    assert told == ["None"]  # as `touch` answered the turn before
    assert world().fulfilled(task, 0, state, [], 1)
    assert not world().fulfilled(task, 0, state, [], 0)


@pytest.fixture
def tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every tenth scenario of a category compared."""
    monkeypatch.setattr(bfcl, "scenarios", lambda category: scenarios(category)[::10])


@pytest.mark.parametrize(
    ("answers", "changed"), [pytest.param(20, 300), pytest.param(200, 3000, marks=pytest.mark.slow)]
)
def test_every_answer_passes_and_changed_turns_get_one_verdict(request, answers, changed) -> None:
    if answers == 20:
        request.getfixturevalue("tenth")
    found = bfcl.check_parity(changed)
    assert found.answers == dict.fromkeys(("base", "miss_func", "miss_param", "long_context"), answers)
    assert found.changed == changed
    # A check that always passes, or always fails, would compare nothing.
    assert changed / 6 < found.passing < changed * 5 / 6


@pytest.mark.usefixtures("tenth")
@pytest.mark.parametrize(
    "grade",
    [
        lambda *_: True,
        lambda self, turn, state, *_: state.graded() == self.graded(turn + 1),
        lambda self, turn, _state, shown, _made: set(self.told[turn]) <= set(shown),
    ],
    ids=["everything passes", "answers are not compared", "states are not compared"],
)
def test_another_grading_is_noticed(grade: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfcl.Truth, "fulfilled", grade)
    with pytest.raises(VerificationError, match="does not grade as the official checker does"):
        bfcl.check_parity(100)


@pytest.mark.usefixtures("tenth")
def test_the_command_says_what_was_compared(toolkit: Toolkit) -> None:
    result = toolkit("world", "check", "bfcl", "--changes", "20", "--json")
    document = result.json()
    assert document["answers"]["base"] == 20
    assert (document["verdict"], document["changed"]) == ("verified", 20)


def test_a_world_that_is_not_there_is_refused(toolkit: Toolkit) -> None:
    toolkit("world", "check", "nowhere").refused(2, "no foreign world", "bfcl")


def files() -> dict[str, bytes]:
    """Return the package's files, looked for anew."""
    return type(PACKAGE).files.__wrapped__(PACKAGE)  # type: ignore[no-any-return]


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place of the wheel that the package is read from."""
    PACKAGE.files()
    monkeypatch.setenv(PACKAGE.wheel, str(tmp_path / "bfcl.whl"))
    return tmp_path / "bfcl.whl"


def test_the_base_category_has_the_turns_and_calls_that_are_registered() -> None:
    plans = [plan for scenario in scenarios() for plan in scenario.plans if plan]
    calls = [call.tool for plan in plans for call in plan]
    assert (len(plans), len(calls), len(set(calls))) == (742, 1160, 82)


@pytest.mark.parametrize("more", [b"", b"\n"])
def test_a_wheel_does_as_well_and_one_byte_that_differs_is_refused(wheel: Path, more: bytes) -> None:
    with zipfile.ZipFile(wheel, "w") as written:
        for number, (name, content) in enumerate(PACKAGE.files().items()):
            written.writestr(name, content + more * (number == 3))
    if not more:
        assert files() == PACKAGE.files()
        return
    with pytest.raises(DamagedError, match=r"not version 2025\.6\.8"):
        files()


@pytest.mark.parametrize("content", [b"", b"no wheel", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_wheel_is_refused(wheel: Path, content: bytes) -> None:
    wheel.write_bytes(content)
    with pytest.raises(DamagedError, match=r"not version 2025\.6\.8"):
        files()


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PACKAGE.wheel, raising=False)
    monkeypatch.setattr(foreign.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(IncompleteError) as missing:
        files()
    assert "pip install --no-deps bfcl-eval==2025.6.8 mpmath" in str(missing.value)


def test_a_call_is_read_without_being_carried_out() -> None:
    assert read_call("f(1, 'a', b=[{'c': -2.5}], d=True)") == Call(
        "f", {"0": 1, "1": "a", "b": [{"c": -2.5}], "d": True}
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "f", "f(x)", "f(g())", "a.f()", "f(**{'a': 1})x", "f(1); g()"),
        *("f(__import__('os').system('true'))", "f(" + "[" * 5000),
    ],
)
def test_what_is_no_call_of_literals_is_refused(text: str) -> None:
    with pytest.raises(DamagedError, match="no call of literals"):
        read_call(text)
