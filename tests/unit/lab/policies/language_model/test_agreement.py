"""What is compared of two engines, and what is refused; `tests/vllm` has the real ones."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.stack import require_stack
from toolkit.errors import IncompleteError
from toolkit.lab.policies.language_model.vllm_engine import CONVERSATIONS, READ, check_agreement

WORDS, SAYS = 7, [3, 1, 4]


class Model:
    """Finds each word likelier the larger the one before it."""

    device = "cpu"

    def __call__(self, input_ids: Any) -> Any:
        import torch

        return SimpleNamespace(logits=torch.outer(input_ids[0].float(), torch.arange(WORDS) / 10)[None])


class Llm:
    """Says the same always, its log-probabilities the model's, but off where it read and where it said."""

    llm_engine = SimpleNamespace(model_config=SimpleNamespace(model="m"))

    def __init__(self, read: float, said: float) -> None:
        self.off = (read, said)
        self.asked: list[list[int]] = []

    def generate(self, prompts: Any, params: Any, **_: Any) -> list[Any]:
        assert [one.seed for one in params] == list(range(CONVERSATIONS))
        self.asked += [prompt["prompt_token_ids"] for prompt in prompts]
        return [self._answer(tokens) for tokens in self.asked]

    def _answer(self, tokens: list[int]) -> Any:
        whole = [*tokens, *SAYS]
        logits = Model()(_row(whole)).logits[0].log_softmax(-1)
        scored = [
            {token: SimpleNamespace(logprob=float(logits[at, token]) + self.off[at + 1 >= len(tokens)])}
            for at, token in enumerate(whole[1:])
        ]
        said = SimpleNamespace(token_ids=SAYS, logprobs=scored[len(tokens) - 1 :])
        return SimpleNamespace(prompt_logprobs=[None, *scored[: len(tokens) - 1]], outputs=[said])


def _row(tokens: list[int]) -> Any:
    import torch

    return torch.tensor([tokens])


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    require_stack()
    names = {
        "vllm": {"SamplingParams": SimpleNamespace},
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.exceptions": {"EngineDeadError": KeyError},
    }
    for name, parts in names.items():
        module = ModuleType(name)
        vars(module).update(parts)
        monkeypatch.setitem(sys.modules, name, module)


CHAT: Any = SimpleNamespace(opening=lambda messages: [len(str(messages)) % WORDS, 2, 5] * READ)


@pytest.mark.parametrize(("read", "said"), [(0, 0), (0.09, 0.019), (-0.09, -0.019)])
def test_engines_that_round_otherwise_agree(read: float, said: float) -> None:
    llm = Llm(read, said)
    apart = check_agreement(llm, CHAT, Model())
    assert apart == pytest.approx((abs(read), abs(said)), abs=1e-6)
    assert {len(tokens) for tokens in llm.asked} == {READ}


@pytest.mark.parametrize(("read", "said"), [(0.11, 0), (0, 0.021), (0, -0.021), (0, float("nan"))])
def test_two_policies_are_refused(read: float, said: float) -> None:
    with pytest.raises(IncompleteError, match="have two policies") as raised:
        check_agreement(Llm(read, said), CHAT, Model())
    assert raised.value.where == "m"
    assert f"over {CONVERSATIONS * len(SAYS)} sampled tokens" in (raised.value.found or "")
