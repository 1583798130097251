"""What the small model reads, writes and is taught."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_model import teaching
from small_model.lessons import (
    NEAR,
    PLAIN,
    conversation,
    copying_batch,
    drill_batch,
    drills_of,
    lesson_batch,
    render,
    sample_conversations,
    sums_batch,
    with_strangers,
)
from small_model.teaching import Phase, Taught, warm_start
from small_model.untrained import make_tokenizer

from tests.unit.stack import require_trainer
from toolkit.errors import UsageError
from toolkit.lab.policies.language_model.conversation import tool_call
from toolkit.lab.policies.language_model.loading import load_model
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import Stream

SEED = 5


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    require_trainer()
    from jinja2 import Environment
    from small_model.template import CHAT_TEMPLATE

    template = Environment(autoescape=False).from_string(CHAT_TEMPLATE)  # noqa: S701 - no page
    return make_tokenizer(template.render(messages=m) for m in sample_conversations(SEED, 60))


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


def _said(tokenizer: Any, tokens: list[int], weights: list[float]) -> Iterator[str]:
    """Yield each text that has full weight, or more."""
    part: list[int] = []
    for token, weight in zip(tokens, weights, strict=True):
        if weight >= 1:
            part.append(token)
        elif part:
            yield tokenizer.decode(part)
            part = []
    yield tokenizer.decode(part)


def test_a_lesson_weighs_what_the_model_says_and_hardly_what_it_reads(tokenizer: Any) -> None:
    for lesson in lesson_batch(tokenizer, SEED, 0, (2,)):
        turns = list(_said(tokenizer, *lesson))
        assert all("<call>" in turn and turn.endswith("<end>") for turn in turns)
        assert turns[-1].endswith("<call>finish<end>")
        text = tokenizer.decode(lesson.tokens)
        assert text.count("<assistant>") == len(turns)
        assert set(lesson.weights) == {0.05, 1.0, 4.0}


def test_what_is_chosen_weighs_most(tokenizer: Any) -> None:
    for tokens, weights in lesson_batch(tokenizer, SEED, 0, (1,)):
        values = "".join(re.findall(r"<is>([^<]*<(?:arg|end)>)", tokenizer.decode(tokens)))
        tools = "".join(re.findall(r"<call>(\w+<(?:arg|end)>)", tokenizer.decode(tokens)))
        chosen = [
            (before, token)
            for before, token, weight in zip(tokens, tokens[1:], weights[1:], strict=False)
            if weight == 4.0
        ]
        start = tokenizer.convert_tokens_to_ids("<assistant>")
        firsts = [token for before, token in chosen if before == start]
        assert len(firsts) == tokens.count(start)
        others = "".join(tokenizer.decode([token]) for before, token in chosen if before != start)
        assert sorted(others) == sorted(values + tools)


def test_lessons_are_of_tasks_that_no_pool_has() -> None:
    prompts = {load_task(f"train:{number}").prompt for number in range(300)}
    assert not prompts & {talk[0]["content"] for talk in sample_conversations(SEED, 50)}


def test_a_batch_is_a_function_of_its_number(tokenizer: Any) -> None:
    assert lesson_batch(tokenizer, SEED, 3, (1,)) == lesson_batch(tokenizer, SEED, 3, (1,))
    together = [lesson for number in range(4) for lesson in lesson_batch(tokenizer, SEED, number, (1,))]
    assert len({tuple(lesson.tokens) for lesson in together}) == len(together) == 4 * 12
    assert lesson_batch(tokenizer, SEED + 1, 3, (1,)) != lesson_batch(tokenizer, SEED, 3, (1,))


def test_in_a_lesson_of_copying_what_has_weight_can_be_known(tokenizer: Any) -> None:
    batches = [copying_batch(tokenizer, SEED, number) for number in (1, PLAIN, NEAR)]
    for tokens, weights in [lesson for batch in batches for lesson in batch]:
        assert any(weights)
        for at, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
            seen = {tokens[i + 1] for i in range(at - 1) if tokens[i] == tokens[at - 1]}
            assert not weight or token in seen


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [tool_call("0", name, arguments)]}


def _answer(content: str) -> dict[str, Any]:
    return {"role": "tool", "name": "", "content": content}


def test_a_drill_is_a_call_with_what_its_arguments_were_read_from() -> None:
    prompt = {"role": "user", "content": "Send all of O-7 from Brno by express. It cost $12.50."}
    look, stock = _call("get_order", order_id="O-7"), _call("check_inventory", product_id="P-1")
    order, shelf = (
        _answer("order O-7 product P-1 quantity 2 pick_list PL-7-2"),
        _answer("product P-1 Riga 10"),
    )
    reserve = _call("reserve_stock", order_id="O-7", product_id="P-1", quantity=10, warehouse="Brno")
    ship = _call("schedule_shipment", order_id="O-7", pick_list="PL-7-2", service="express")
    refund, finish = _call("issue_refund", amount_cents=1250), _call("finish")
    done = _answer("revision 1")
    talk = [prompt, look, order, stock, shelf, reserve, done, ship, done, refund, done, finish]
    assert drills_of(talk) == [
        [prompt, look],
        [prompt, look, order, stock],
        [prompt, stock, shelf, reserve],
        [prompt, look, order, ship],
        [prompt, refund],
    ]


@pytest.mark.slow
def test_a_drill_tells_no_tool_and_half_of_them_are_about_shipping(tokenizer: Any) -> None:
    drills = [drill for number in range(16) for drill in drill_batch(tokenizer, SEED, number)]
    tools: Counter[str] = Counter()
    for tokens, weights in drills:
        said = list(_said(tokenizer, tokens, weights))
        before, call = tokenizer.decode(tokens).rsplit("<assistant>", 1)[1].split("<call>")
        assert said[0] == before + "<call>"
        tool, arguments = call.split("<is>", 1)
        assert "".join(said[1].split()) == "".join(arguments.split())
        tools[tool.split("<arg>")[0]] += 1
    assert len(tools) >= 10
    assert tools.pop("schedule_shipment") == pytest.approx(len(drills) / 2, rel=0.25)
    assert max(tools.values()) < 3 * tools.total() / len(tools)


def test_strangers_have_one_name_each_wherever_they_are_written() -> None:
    prompt = "ada.costa15@mail.example about Ada Costa and Bea Falk"
    answer = '{"name": "Ada Costa", "email": "ada.costa15@mail.example", "other": "bea.falk3@post.example"}'
    talk = [
        {"role": "user", "content": prompt},
        _call("search_customers", query="Ada Costa"),
        _answer(answer),
    ]
    changed = with_strangers(talk, Stream(1))
    assert changed == with_strangers(talk, Stream(1))
    assert changed != with_strangers(talk, Stream(2))
    stranger = changed[1]["tool_calls"][0]["function"]["arguments"]["query"].removeprefix("Ada ")
    other = changed[0]["content"].partition("Bea ")[2]
    assert len({stranger, other, "Costa", "Falk"}) == 4
    text = json.dumps(talk)
    for old, new in (("Costa", stranger), ("Falk", other)):
        text = text.replace(old, new).replace(old.lower(), new.lower())
    assert json.loads(text) == changed


def test_who_gives_an_address_alone_is_a_stranger_too() -> None:
    (changed,) = with_strangers([_answer("kira.abbott58@inbox.example writes:")], Stream(1))
    assert "abbott" not in changed["content"]
    assert changed["content"].startswith("kira.")
    assert changed["content"].endswith("58@inbox.example writes:")


def test_a_sum_weighs_what_has_to_be_reckoned(tokenizer: Any) -> None:
    lessons = sums_batch(tokenizer, SEED, 0)
    assert lessons == sums_batch(tokenizer, SEED, 0) != sums_batch(tokenizer, SEED, 1)
    for tokens, weights in lessons:
        given = tokenizer.decode([t for t, weight in zip(tokens, weights, strict=True) if weight == 0])
        said = tokenizer.decode([t for t, weight in zip(tokens, weights, strict=True) if weight == 1])
        quantity, cents = map(int, re.findall(r"\d+", given))
        assert given.endswith(":")
        assert said.endswith(f"<call>issue_refund<arg>amount_cents<is>{quantity * cents}<end>")


def test_the_point_between_dollars_and_cents_is_not_read(tokenizer: Any) -> None:
    dollars, cents = (tokenizer.tokenize(f"refund {amount}") for amount in ("12.50", "1250"))
    assert dollars == cents
    assert tokenizer.decode(tokenizer("write to a.b@c.example. Version 1.5")["input_ids"]).count(".") == 4


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
