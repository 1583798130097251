"""Conversations token by token, side by side, against a loop that holds one alone and reads it all again."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.unit.lab.probe.tiny import VOCABULARY, tiny_model
from tests.unit.stack import require_stack

require_stack()

import torch  # noqa: E402

from toolkit.errors import IncompleteError, UsageError  # noqa: E402
from toolkit.lab.policies.language_model.lockstep import Continuation, Place, SharedNoise, exponentials, speak  # noqa: E402  # noqa: E402
from toolkit.seeds import units  # noqa: E402

END = 5
# Shorter than the convolution of linear attention (4), longer than a chunk of it (64).
OPENINGS = [[(7 * at + length) % VOCABULARY for at in range(length)] for length in (3, 17, 70, 9, 31)]
TURNS = (1, 3, 2, 6, 4)


class Parrot:
    """A partner that answers with as many tokens as it has heard turns, until it has heard enough."""

    def __init__(self, turns: int) -> None:
        self.left = turns
        self.heard: list[tuple[tuple[int, ...], int, bool]] = []

    def reply(self, turn: Sequence[int], before: Sequence[int], *, cut: bool) -> list[int] | None:
        self.heard.append((tuple(turn), len(before), cut))
        self.left -= 1
        return None if self.left <= 0 else [60 + len(self.heard)] * (2 * len(self.heard))


@pytest.fixture(scope="module")
def model() -> Any:
    """Return a model whose turns end after a dozen tokens or so, and which heeds what stood before."""

    def end_sooner(_: Any, __: Any, out: Any) -> None:
        out.logits[..., END] += 2.5

    made = tiny_model()
    with torch.no_grad():
        made.get_output_embeddings().weight.mul_(6)
    made.register_forward_hook(end_sooner)
    return made


def held(model, which, *, shared=False, **changed) -> tuple[list[Continuation], list[Parrot]]:
    partners = [Parrot(TURNS[at]) for at in which]
    openings = [OPENINGS[at] for at in which]
    options = {"end": END, "max_tokens": 90, **changed}
    draws = [SharedNoise(at) if shared else units(at) for at in which]
    return speak(model, openings, partners, draws, **options), partners


def alone(model, at, temperature=1.0, most=90, *, shared=False) -> tuple[list[int], list[bool]]:
    """Hold one conversation without a cache, without padding, each token after all before it."""
    tokens, chosen, numbers, partner = list(OPENINGS[at]), [], units(at), Parrot(TURNS[at])
    turns = 0
    start, turn = len(tokens), []
    while len(tokens) - start < most:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1].double()
        if shared and temperature:
            (noise,) = exponentials(Place(SharedNoise(at), turns, len(turn)), len(logits))
            token = int((logits / temperature - torch.tensor(noise).log()).argmax())
        else:
            token = sampled(logits, temperature, numbers)
        before = list(tokens[: len(tokens) - len(turn)])
        tokens.append(token)
        turn.append(token)
        chosen.append(True)
        if token == END or len(tokens) - start == most:
            answer = partner.reply(turn, before, cut=token != END)
            turn, turns = [], turns + 1
            if answer is None or len(tokens) - start + len(answer) >= most:
                break
            tokens += answer
            chosen += [False] * len(answer)
    return tokens[start:], chosen


def sampled(logits: Any, temperature: float, numbers: Iterator[float]) -> int:
    if temperature == 0:
        return int(logits.argmax())
    weights = list(accumulate(((logits - logits.max()) / temperature).exp().tolist()))
    return bisect_right(weights, next(numbers) * weights[-1])


@pytest.mark.parametrize(("temperature", "shared"), [(1.0, False), (0.0, False), (0.7, True)])
def test_conversations_side_by_side_are_those_that_are_held_alone(model, temperature, shared) -> None:
    together, partners = held(model, range(5), temperature=temperature, shared=shared)
    for at, spoken in enumerate(together):
        assert (spoken.tokens, spoken.chosen) == alone(model, at, temperature, shared=shared)
    if temperature:
        assert len({len(spoken.tokens) for spoken in together}) == 5
        assert len({len(turn) for partner in partners for turn, *_ in partner.heard}) > 4
        assert any(False in spoken.chosen for spoken in together)


def test_shared_samples_depend_on_neither_the_batch_nor_the_place_in_it(model: Any) -> None:
    together, _ = held(model, range(5), shared=True)
    for which in ((0,), (3,), (4, 2, 0, 1, 3), (1, 1, 4)):
        some, _ = held(model, which, shared=True)
        assert some == [together[at] for at in which]
    assert len({tuple(spoken.tokens) for spoken in together}) == 5


def test_a_partner_hears_each_turn_and_what_stood_before_it(model: Any) -> None:
    together, partners = held(model, range(5))
    for at, (spoken, partner) in enumerate(zip(together, partners, strict=True)):
        whole = OPENINGS[at] + spoken.tokens
        for turn, before, cut in partner.heard:
            assert whole[before : before + len(turn)] == list(turn)
            assert cut == (turn[-1] != END)


@pytest.mark.parametrize("most", [1, 7])
def test_a_conversation_has_no_more_tokens_than_it_may(model: Any, most: int) -> None:
    together, _ = held(model, range(5), max_tokens=most)
    for at, spoken in enumerate(together):
        assert len(spoken.tokens) <= most
        assert (spoken.tokens, spoken.chosen) == alone(model, at, most=most)


def stubbed(model: Callable[..., Any], context: int = 1000) -> Any:
    """Return a function of a model's inputs as a model."""
    text = SimpleNamespace(max_position_embeddings=context)
    weight = torch.zeros(1)
    stub: Any = type("Stub", (), {"__call__": lambda _, **options: model(**options)})()
    stub.config = SimpleNamespace(get_text_config=lambda: text)
    stub.get_input_embeddings = lambda: SimpleNamespace(weight=weight)
    return stub


def said(
    tokens: Sequence[int], *, room: int, context: int = 1000, answer: int = 0
) -> tuple[Continuation, Parrot]:
    """Hold a conversation with a model that says given tokens, then the end of its turn, for ever."""
    wanted = [*tokens, END]
    steps = iter(range(10**6))

    def model(**_: Any) -> Any:
        logits = torch.zeros(1, 1, VOCABULARY)
        logits[0, 0, wanted[next(steps) % len(wanted)]] = 1e4
        return SimpleNamespace(logits=logits, past_key_values=None)

    class Answers(Parrot):
        def reply(self, turn: Sequence[int], before: Sequence[int], *, cut: bool) -> list[int] | None:
            super().reply(turn, before, cut=cut)
            return [70] * answer

    partner = Answers(9)
    (spoken,) = speak(stubbed(model, context), [[1, 2, 3]], [partner], [units(0)], end=END, max_tokens=room)
    return spoken, partner


@pytest.mark.parametrize(
    ("said_tokens", "limits", "chosen", "cuts"),
    [
        ([8, 9], {"room": 6, "answer": 3}, [True] * 3, [False]),
        ([8, 9], {"room": 7, "answer": 3}, [True] * 3 + [False] * 3 + [True], [False, True]),
        ([8] * 20, {"room": 100, "context": 10}, [True] * 7, [True]),
    ],
    ids=["an answer that leaves no room is not read", "one that leaves room for a token is", "context"],
)
def test_what_ends_a_conversation(said_tokens, limits, chosen, cuts) -> None:
    spoken, partner = said(said_tokens, **limits)
    assert spoken.chosen == chosen
    assert [cut for *_, cut in partner.heard] == cuts


def test_an_opening_that_fills_the_context_is_refused(model: Any) -> None:
    with pytest.raises(UsageError, match="context is too small") as raised:
        speak(model, [[1] * 256, [1]], [Parrot(1), Parrot(1)], [units(0)] * 2, end=END, max_tokens=5)
    assert (raised.value.expected, raised.value.found) == ("more than 256 tokens", "256 tokens")


def test_too_little_memory_is_told_of(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    full = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB")
    monkeypatch.setattr(model, "forward", Mock(side_effect=full))
    with pytest.raises(IncompleteError, match="not enough memory for the conversations") as raised:
        held(model, range(5))
    assert raised.value.remedy
