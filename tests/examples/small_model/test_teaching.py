"""A step of supervised learning, against a loop over single lessons."""

from tests.unit.lab.probe.tiny import TEXT
from tests.unit.stack import require_trainer

require_trainer()

import pytest  # noqa: E402
import torch  # noqa: E402
from small_model.lessons import Lesson  # noqa: E402
from small_model.teaching import CLIPPED, learn, one_core_each  # noqa: E402
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig  # noqa: E402

LESSONS = [
    Lesson([5, 6, 7, 8, 9], [0.0, 0.05, 1.0, 4.0, 1.0]),
    Lesson([3, 2, 1], [0.05, 0.0, 1.0]),
    Lesson([9, 9, 4, 8, 1, 2, 3], [0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.05]),
]


def model() -> Qwen3_5ForCausalLM:
    torch.manual_seed(3)
    heads = dict.fromkeys(("num_attention_heads", "linear_num_key_heads", "linear_num_value_heads"), 2)
    widths = dict.fromkeys(("head_dim", "linear_key_head_dim", "linear_value_head_dim"), 8)
    small = {"vocab_size": 12, "hidden_size": 16, "intermediate_size": 16, "num_key_value_heads": 1}
    return Qwen3_5ForCausalLM(Qwen3_5TextConfig(**TEXT | small | heads | widths))


@pytest.mark.parametrize("batch", [LESSONS, LESSONS[:1]])
def test_it_goes_down_the_weighted_mean_loss(batch: list[Lesson]) -> None:
    mine, loop = model(), model()
    optimizer = torch.optim.SGD(mine.parameters(), lr=1.0)
    before = [weights.detach().clone() for weights in mine.parameters()]
    with one_core_each() as workers:
        loss = learn(mine, optimizer, batch, 0, workers)

    told, total, said = torch.zeros(()), 0.0, []
    for lesson in batch:
        chances = loop(input_ids=torch.tensor([lesson.tokens])).logits[0].log_softmax(-1)
        for at, weight in enumerate(lesson.weights[1:]):
            one = -chances[at, lesson.tokens[at + 1]]
            told, total = told + weight * one, total + weight
            said += [float(one.detach())] if weight >= 1 else []
    (told / total).backward()
    torch.nn.utils.clip_grad_norm_(loop.parameters(), CLIPPED)
    assert loss == pytest.approx(sum(said) / len(said), rel=1e-5)
    for start, found, expected in zip(before, mine.parameters(), loop.parameters(), strict=True):
        assert expected.grad is not None
        torch.testing.assert_close(start - found.detach(), expected.grad, rtol=1e-3, atol=1e-6)


def test_threads_are_given_back() -> None:
    torch.set_num_threads(2)
    with one_core_each():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
