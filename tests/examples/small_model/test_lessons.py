"""What the small model reads, writes and is taught."""

import json
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
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
from small_model.untrained import make_tokenizer

from tests.unit.stack import require_trainer
from toolkit.errors import UsageError
from toolkit.lab.policies.language_model.loading import load_model
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES

SEED = 5
TEMPLATE = Environment(autoescape=False).from_string(CHAT_TEMPLATE)  # noqa: S701 - no page


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    require_trainer()
    return make_tokenizer(TEMPLATE.render(messages=m) for m in sample_conversations(SEED, 60))


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
