"""`toolkit episode`: what a person sees, what a machine gets, and what bad input gets."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Result, Toolkit
from toolkit.seeds import evaluation_seed
from toolkit.tasks.pools import load_task

FIXED = ("clean", "faults_p010", "faults_p025", "held_out_types", "challenge", "flips_q010")
GOLDEN = CHECKOUT / "tests/golden/episode.json"


@pytest.mark.parametrize("regime", FIXED)
def test_an_episode_is_one_document(toolkit: Toolkit, regime: str) -> None:
    done = toolkit("episode", "play", "--task", "validation:0", "--regime", regime, "--schedule", 0, "--json")
    document = done.json()
    assert done.code == 0
    assert {"true_success", "observed_reward", "calls"} <= document.keys()
    assert all({"key", "fault"} <= call.keys() for call in document["calls"])
    assert document["schedule_seed"] == str(evaluation_seed("validation:0", 0))


def test_a_person_sees_the_prompt_the_calls_the_faults_and_the_outcome(toolkit: Toolkit) -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    done = toolkit("episode", "replay", GOLDEN)
    assert done.code == 0
    for line in document["prompt"].splitlines():
        assert line in done.out
    for call in document["calls"]:
        assert f"{call['tool']}(" in done.out
        if call["fault"]:
            assert f"⚡ {call['fault']}" in done.out
    assert "true success yes" in done.out
    assert f"{document['calls_charged']} of {document['budget']} calls" in done.out


def test_a_failure_is_shown_field_by_field(toolkit: Toolkit) -> None:
    done = toolkit("episode", "play", "--task", "test:7", "--regime", "challenge", "--agent", "careless")
    assert done.code == 0
    assert "true success no" in done.out
    assert "expected" in done.out


def test_full_prints_answers_whole(toolkit: Toolkit) -> None:
    short, full = (toolkit("episode", "play", *more).out for more in ((), ("--full",)))
    assert '"revision"' in full
    assert '"revision"' not in short


def test_a_schedule_can_be_named_by_its_seed(toolkit: Toolkit) -> None:
    seed = evaluation_seed("test:3", 2)
    by_index = toolkit(
        "episode", "play", "--task", "test:3", "--regime", "faults_p025", "--schedule", 2, "--json"
    )
    by_seed = toolkit(
        "episode", "play", "--task", "test:3", "--regime", "faults_p025", "--seed", hex(seed), "--json"
    )
    assert by_index.out == by_seed.out


def test_what_was_played_can_be_replayed(toolkit: Toolkit, tmp_path: Path) -> None:
    file = tmp_path / "episode.json"
    file.write_text(toolkit("episode", "play", "--regime", "faults_p025", "--json").out, encoding="utf-8")
    replayed = toolkit("episode", "replay", file, "--json").json()
    assert replayed["verdict"] == "verified"
    assert replayed["calls"] == json.loads(file.read_text(encoding="utf-8"))["calls_charged"]


def test_an_episode_is_replayed_from_stdin(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(GOLDEN.read_text(encoding="utf-8")))
    assert toolkit("episode", "replay", "-").code == 0


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
def test_a_file_that_is_no_episode_is_refused(
    toolkit: Toolkit, tmp_path: Path, content: str | None, code: int
) -> None:
    file = tmp_path / "episode.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    toolkit("episode", "replay", file).refused(code)


def test_full_shows_event_keys(toolkit: Toolkit) -> None:
    done = toolkit("episode", "replay", GOLDEN, "--full")
    for call in json.loads(GOLDEN.read_text(encoding="utf-8"))["calls"]:
        if call["key"]:
            assert " ".join(map(str, call["key"])) in done.out


class TestByHand:
    def play(self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch, text: str, *more: str) -> Result:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return toolkit("episode", "play", "--by-hand", "--task", "validation:0", *more)

    def test_the_plan_typed_in_succeeds(self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
        lines = []
        for number, call in enumerate(load_task("validation:0").plan):
            words = [f'{name}="{value}"' for name, value in call.arguments.items()]
            typed = " ".join(words) if number % 2 else json.dumps(call.arguments)
            lines.append(f"{call.tool} {typed}")
        done = self.play(
            toolkit, monkeypatch, "\n".join([*lines, "finish", "get_order order_id=O-1"]), "--json"
        )
        document = done.json()
        assert (document["true_success"], document["ended"]) == (True, "finished")
        assert len(document["calls"]) == len(lines) + 1

    def test_the_prompt_and_answers_are_on_stderr(
        self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done = self.play(toolkit, monkeypatch, "tools\ntask\nhelp\nget_order order_id=O-1\n", "--json")
        assert load_task("validation:0").prompt in done.err
        assert "schedule_shipment order_id pick_list service" in done.err
        assert "not_found" in done.err
        assert done.json()["ended"] == "stopped"

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
    def test_a_line_that_is_no_call_costs_nothing(
        self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch, line: str
    ) -> None:
        document: dict[str, Any] = self.play(toolkit, monkeypatch, line, "--json").json()
        assert document["calls"] == []

    def test_words_may_be_divided_by_tabs(self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
        document = self.play(toolkit, monkeypatch, "get_order\torder_id=O-1", "--json").json()
        assert document["calls"][0]["answer"]["error"]["code"] == "not_found"

    def test_an_interrupt_leaves_the_episode_as_it_is(
        self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Interrupted(io.StringIO):
            def readline(self, *size: int) -> str:
                line = super().readline(*size)
                if not line:
                    raise KeyboardInterrupt
                return line

        monkeypatch.setattr("sys.stdin", Interrupted("get_order order_id=O-1\n"))
        done = toolkit("episode", "play", "--by-hand", "--json")
        assert (done.code, done.json()["ended"], len(done.json()["calls"])) == (0, "stopped", 1)

    def test_it_ends_with_the_budget(self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
        document = self.play(toolkit, monkeypatch, "wait seconds=1\n" * 50, "--json").json()
        assert document["ended"] == "budget_exceeded"
        assert len(document["calls"]) == document["budget"] + 1
