"""`toolkit episode`: what a person sees, what a machine gets, and what bad input gets."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Result, Toolkit
from toolkit.lab.tasks.pools import load_task
from toolkit.seeds import evaluation_seed

GOLDEN = CHECKOUT / "tests/golden/episode.json"
ByHand = Callable[[str | io.StringIO], Result]


@pytest.mark.parametrize("regime", ["clean", "faults_p025"])
def test_an_episode_is_one_document(toolkit: Toolkit, regime: str) -> None:
    done = toolkit("episode", "play", "--task", "validation:0", "--regime", regime, "--schedule", 0, "--json")
    document = done.json()
    assert done.code == 0
    assert {"true_success", "observed_reward", "calls"} <= document.keys()
    assert all({"key", "fault"} <= call.keys() for call in document["calls"])
    assert document["schedule_seed"] == str(evaluation_seed("validation:0", 0))


def test_a_person_sees_the_prompt_the_calls_the_faults_and_the_outcome(toolkit, monkeypatch) -> None:
    text = GOLDEN.read_text(encoding="utf-8")
    document = json.loads(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    shown = toolkit("episode", "replay", "-")
    keys = [" ".join(map(str, call["key"])) for call in document["calls"] if call["key"]]
    expected = [*document["prompt"].splitlines(), *(f"{call['tool']}(" for call in document["calls"])]
    expected += [f"⚡ {call['fault']}" for call in document["calls"] if call["fault"]]
    expected += ["true success yes", f"{document['calls_charged']} of {document['budget']} calls"]
    assert (shown.code, [part for part in expected if part not in shown.out]) == (0, [])
    assert '"revision"' not in shown.out
    full = toolkit("episode", "replay", GOLDEN, "--full").out
    assert [part for part in (*keys, '"revision"') if part not in full] == []


def test_a_failure_is_shown_field_by_field(toolkit: Toolkit) -> None:
    done = toolkit("episode", "play", "--task", "test:7", "--regime", "challenge", "--agent", "careless")
    assert (done.code, "true success no" in done.out, "expected" in done.out) == (0, True, True)


def test_a_schedule_can_be_named_by_its_seed(toolkit: Toolkit) -> None:
    play = ("episode", "play", "--task", "test:3", "--regime", "faults_p025", "--json")
    seed = hex(evaluation_seed("test:3", 2))
    assert toolkit(*play, "--schedule", 2).out == toolkit(*play, "--seed", seed).out


def test_what_was_played_can_be_replayed(toolkit: Toolkit, tmp_path: Path) -> None:
    file = tmp_path / "episode.json"
    file.write_text(toolkit("episode", "play", "--regime", "faults_p025", "--json").out, encoding="utf-8")
    replayed = toolkit("episode", "replay", file, "--json").json()
    assert replayed["verdict"] == "verified"
    assert replayed["calls"] == json.loads(file.read_text(encoding="utf-8"))["calls_charged"]


def test_a_changed_episode_is_a_failed_verification(toolkit: Toolkit, tmp_path: Path) -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["calls"][0]["answer"] = {"revision": 5}
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    toolkit("episode", "replay", file).refused(1, "call 0 came out otherwise")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("not json", 4),
        ("[]", 4),
        ("{}", 4),
        ("[" * 100_000, 4),
        ('{"calls_charged": NaN}', 4),
        ('{"calls_charged": 1e400}', 4),
        (None, 3),
    ],
)
def test_a_file_that_is_no_episode_is_refused(toolkit, tmp_path, content, code) -> None:
    file = tmp_path / "episode.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    toolkit("episode", "replay", file).refused(code)


@pytest.fixture
def by_hand(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> ByHand:
    """Return what plays an episode with the lines that are typed."""

    def played(text: str | io.StringIO) -> Result:
        monkeypatch.setattr("sys.stdin", io.StringIO(text) if isinstance(text, str) else text)
        return toolkit("episode", "play", "--by-hand", "--task", "validation:0", "--json")

    return played


def test_the_plan_typed_in_succeeds(by_hand: ByHand) -> None:
    lines = []
    for number, call in enumerate(load_task("validation:0").plan):
        words = [f'{name}="{value}"' for name, value in call.arguments.items()]
        typed = " ".join(words) if number % 2 else json.dumps(call.arguments)
        lines.append(f"{call.tool} {typed}")
    document = by_hand("\n".join([*lines, "finish", "get_order order_id=O-1"])).json()
    assert (document["true_success"], document["ended"]) == (True, "finished")
    assert len(document["calls"]) == len(lines) + 1


def test_the_prompt_and_answers_are_on_stderr(by_hand: ByHand) -> None:
    done = by_hand("tools\ntask\nhelp\nget_order\torder_id=O-1\n")
    for text in (load_task("validation:0").prompt, "schedule_shipment order_id pick_list", "not_found"):
        assert text in done.err
    assert (done.json()["ended"], len(done.json()["calls"])) == ("stopped", 1)


@pytest.mark.parametrize(
    "line",
    [
        'get_order "',
        "get_order O-1",
        "get_order {bad",
        "get_order [1]",
        "get_order order_id=O-1 order_id=O-2",
        'get_order {"a":' + "[" * 5000,
        "?",
        "quit",
        "exit",
    ],
)
def test_a_line_that_is_no_call_costs_nothing(by_hand: ByHand, line: str) -> None:
    assert by_hand(line).json()["calls"] == []


def test_an_interrupt_leaves_the_episode_as_it_is(by_hand: ByHand) -> None:
    class Interrupted(io.StringIO):
        def readline(self, *size: int) -> str:
            line = super().readline(*size)
            if not line:
                raise KeyboardInterrupt
            return line

    done = by_hand(Interrupted("get_order order_id=O-1\n"))
    assert (done.code, done.json()["ended"], len(done.json()["calls"])) == (0, "stopped", 1)


def test_it_ends_with_the_budget(by_hand: ByHand) -> None:
    document = by_hand("wait seconds=1\n" * 50).json()
    assert document["ended"] == "budget_exceeded"
    assert len(document["calls"]) == document["budget"] + 1
