"""What the small model reads, writes and is taught."""

import json
import re
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment
from small_model import teaching
from small_model.lessons import (
    NEAR,
    PLAIN,
    conversation,
    copying_batch,
    drill_batch,
    lesson_batch,
    render,
    sample_conversations,
    sums_batch,
)
from small_model.softening import demonstrations
from small_model.teaching import Phase, Taught, warm_start
from small_model.template import CHAT_TEMPLATE
from small_model.thoughts import worked_out
from small_model.untrained import make_tokenizer

from tests.unit.stack import require_trainer
from toolkit.errors import UsageError
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.agents import AGENTS, watched_careless
from toolkit.lab.episodes.brief import read_prompt
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.language_model.conversation import as_text
from toolkit.lab.policies.language_model.loading import load_model
from toolkit.lab.tasks.pools import load_task, positions
from toolkit.noise.regimes import REGIMES

SEED = 5
FAULTS = REGIMES["faults_p025"]
TEMPLATE = Environment(autoescape=False).from_string(CHAT_TEMPLATE)  # noqa: S701 - no page


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    require_trainer()
    return make_tokenizer(TEMPLATE.render(messages=m) for m in sample_conversations(SEED, 60))


@pytest.mark.parametrize(
    ("number", "from_right", "from_left"),
    [
        ("94250", ["9", "42", "50"], ["94", "25", "0"]),
        ("1250", ["12", "50"], ["12", "50"]),
        ("200017", ["20", "00", "17"], ["20", "00", "17"]),
        ("7", ["7"], ["7"]),
    ],
)
def test_numbers_are_cut_into_pairs_from_the_right_and_identifiers_from_the_left(
    tokenizer: Any, number: str, from_right: list[str], from_left: list[str]
) -> None:
    for pairs, texts in (
        (from_right, (f"amount_cents {number}", f"${number}")),
        (from_left, (f"order O-{number}", f"pick_list: PL-{number}", f"<is> O-{number}")),
    ):
        for text in texts:
            tokens = tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
            assert [token for token in tokens if token.isdigit()] == pairs


def test_an_identifier_begins_with_one_token_wherever_it_stands(tokenizer: Any) -> None:
    begins = {
        tuple(tokenizer.tokenize(text)[-4:])
        for text in ("order O-94250", "<is> O-94250", "order_id:O-94250", "(O-94250")
    }
    assert begins == {("O-", "94", "25", "0")}


def test_a_call_that_was_written_is_read_as_it_was_meant(tokenizer: Any) -> None:
    talk = conversation(load_task("train:3"), REGIMES["clean"], 0)
    assert talk is not None
    for message in talk[1::2]:
        before, after = [{"role": "user", "content": "x"}], message
        whole = tokenizer(render(tokenizer, [*before, after]))["input_ids"]
        opening = tokenizer.apply_chat_template(
            before, tokenize=True, return_dict=False, add_generation_prompt=True
        )
        read = tokenizer.parse_response(whole[len(opening) :], prefix=opening)
        (call,), (meant,) = read["tool_calls"], message["tool_calls"]
        assert call["function"]["name"] == meant["function"]["name"]
        said = {name: str(value) for name, value in meant["function"]["arguments"].items()}
        assert {name: str(value) for name, value in call["function"]["arguments"].items()} == said


def test_lessons_are_of_tasks_that_no_pool_has() -> None:
    prompts = {load_task(f"train:{number}").prompt for number in range(300)}
    assert not prompts & {talk[0]["content"] for talk in sample_conversations(SEED, 50)}


def test_in_a_lesson_of_copying_what_has_weight_can_be_known(tokenizer: Any) -> None:
    batches = [copying_batch(tokenizer, SEED, number) for number in (1, PLAIN, NEAR)]
    for tokens, weights in [lesson for batch in batches for lesson in batch]:
        assert any(weights)
        for at, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
            seen = {tokens[i + 1] for i in range(at - 1) if tokens[i] == tokens[at - 1]}
            assert not weight or token in seen


@cache
def played(regime: str) -> list[Any]:
    """Return the first tasks of the training pool as conversations."""
    return [conversation(load_task(f"train:{number}"), REGIMES[regime], number) for number in range(60)]


# What `small` and `small-soft` were taught, to the last token: as it would be taught again.
TAUGHT: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "conversations": ("0cac73aa47e103e6", lambda _: sample_conversations(SEED, 60)),
    "clean tasks": ("aef29c20abb96773", lambda _: played("clean")),
    "tasks under faults": ("52b6527937f02e0e", lambda _: played("faults_p025")),
    "lessons": (
        "6258b9ce5d9c8bfa",
        lambda it: [lesson_batch(it, SEED, 0, (1,)), lesson_batch(it, SEED, 4, (1, 2), strange=True)],
    ),
    "copying": ("7a81271a9a9707d8", lambda it: [copying_batch(it, SEED, at) for at in (1, PLAIN, NEAR)]),
    "sums": ("992167e87ab6cb74", lambda it: sums_batch(it, SEED, 0)),
    "softening": ("bd0465a01c231608", lambda _: [demonstrations(0, number) for number in range(3)]),
    "drills": ("388155e38755d970", lambda it: [drill_batch(it, SEED, at, strange=True) for at in range(2)]),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "drills")) for name in TAUGHT]
)
def test_what_was_taught_is_what_would_be_taught_again(tokenizer: Any, name: str) -> None:
    expected, made = TAUGHT[name]
    assert sha256(json.dumps(made(tokenizer)).encode()).hexdigest()[:16] == expected


def test_another_seed_teaches_something_else(tokenizer: Any) -> None:
    assert lesson_batch(tokenizer, SEED + 1, 3, (1,)) != lesson_batch(tokenizer, SEED, 3, (1,))
    assert sums_batch(tokenizer, SEED, 0) != sums_batch(tokenizer, SEED, 1)
    assert demonstrations(1, 3) != demonstrations(0, 3)


def read(text: str, role: str = "user") -> str:
    """Return a text as the chat template writes it."""
    written: str = TEMPLATE.render(messages=[{"role": role, "content": text}])
    return written.removeprefix(f"<{role}> ").removesuffix("<end>")


@pytest.mark.parametrize("regime", ["clean", "faults_p025"])
def test_what_is_read_out_stands_word_for_word_in_an_answer(regime: str) -> None:
    count = 0
    for talk in filter(None, played(regime)):
        for at in range(1, len(talk), 2):
            said = talk[at]["content"].split("\n")[-1]
            records = said if said.startswith(" C-") else said.rpartition("?")[2] if "?" in said else ""
            for record in re.findall(r"[CO]-.*?(?= [CO]-|$)", records):
                count += 1
                assert any(record in read(answer["content"], "tool") for answer in talk[2:at:2])
    assert count > 10


def test_what_is_said_of_a_line_stands_word_for_word_in_the_task() -> None:
    for talk in filter(None, played("clean")):
        task = read(talk[0]["content"])
        for answer in talk[1::2]:
            for line in answer["content"].split("\n")[1:-1]:
                assert f"\n{line}\n" in f"{task}\n"


ORDER = {"order_id": "O-7", "placed_on": "2026-02-21", "products": ["oak desk", "wool rug"]}


def test_other_answers_lose_json_s_punctuation_alone() -> None:
    text = as_text({"order": ORDER, "ok": True, "at": "12:30", "none": None})
    assert read(text, "tool") == "order O-7 2026-02-21 oak desk wool rug ok true at 12 30 none null"


@given(st.integers(2, 9), st.integers(1, 10**7))
def test_the_last_digits_of_each_product_are_those_of_the_whole(quantity: int, cents: int) -> None:
    """The pairs are those of the price, from the right."""
    pairs, products = (worked_out(quantity, cents).split(",")[at::2] for at in (0, 1))
    assert "".join(reversed(pairs)) == str(cents)
    assert all(len(pair) == 2 for pair in pairs[:-1])
    read = products[-1] + "".join(product[-2:] for product in reversed(products[:-1]))
    assert int(read) == quantity * cents


def calls(talk: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    made = [message["tool_calls"][0]["function"] for message in talk if message["role"] == "assistant"]
    return [(call["name"], call["arguments"]) for call in made]


def test_every_task_has_one_request_and_every_call_is_a_tool_s() -> None:
    talks = [talk for number in range(3) for talk in demonstrations(0, number)]
    assert {len(read_prompt(talk[0]["content"]).errands) for talk in talks} == {1}
    assert {name for talk in talks for name, _ in calls(talk)} <= set(TOOLS)
    assert {calls(talk)[-1][0] for talk in talks} >= {"finish"}


def test_a_careless_conversation_is_that_agent_s_episode_whether_it_fails_or_not() -> None:
    outcomes = set()
    for number in positions("train", 1)[:20]:
        task = load_task(f"train:{number}")
        talk = conversation(task, FAULTS, 7, watched_careless, failed=True)
        played = play(task, FAULTS, 7, AGENTS["careless"], traced=True)
        assert talk is not None
        assert [name for name, _ in calls(talk)] == [call.tool for call in played.trace or ()]
        kept = conversation(task, FAULTS, 7, watched_careless)
        assert (kept == talk) is played.true_success
        outcomes.add(played.true_success)
    assert outcomes == {True, False}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    require_trainer()
    monkeypatch.setattr(teaching, "TEXTS", 60)
    monkeypatch.setattr(teaching, "PHASES", (Phase(2, (1,), 0, 100), Phase(3, (1,), 100, 0)))
    monkeypatch.setattr(teaching, "KEPT_EVERY", 2)


class CutOffError(Exception):
    """Somebody pulled the plug."""


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_teaching_that_was_cut_off_goes_on_to_the_same_model(tmp_path: Path) -> None:
    import torch

    def cut(taught: Taught) -> None:
        if taught.step == 3:
            raise CutOffError

    with pytest.raises(CutOffError):
        warm_start(tmp_path / "cut", batches=5, watch=cut)
    with pytest.raises(UsageError, match="another model was begun"):
        warm_start(tmp_path / "cut", batches=5, seed=1)
    steps: list[int] = []
    warm_start(tmp_path / "cut", batches=5, watch=lambda taught: steps.append(taught.step))
    warm_start(tmp_path / "whole", batches=5)
    assert steps == [3, 4, 5]
    names = sorted(path.name for path in (tmp_path / "whole").iterdir() if not path.name.startswith("."))
    assert set(names) <= {path.name for path in (tmp_path / "cut").iterdir()}
    for name in names:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    loaded = load_model(str(tmp_path / "whole"))
    assert {weights.dtype for weights in loaded.parameters()} == {torch.float32}
    assert all(weights.equal(weights.bfloat16().float()) for weights in loaded.parameters())
