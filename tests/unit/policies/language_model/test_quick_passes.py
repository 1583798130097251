"""What makes a pass over many conversations quick gives what transformers gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.probe.stack import require_stack

require_stack()

import torch  # noqa: E402
from transformers import DynamicCache  # noqa: E402

from toolkit.policies.language_model.grouped_attention import NAME, grouped_attention  # noqa: E402
from toolkit.policies.language_model.spacious_cache import ROOM, SpaciousLayer, make_room  # noqa: E402
from toolkit.training.language_model.small import make_model, make_tokenizer  # noqa: E402

FIELD = "_attn_implementation_internal"


@pytest.fixture(scope="module")
def model() -> Any:
    return make_model(make_tokenizer(["a few words of a back office"]), 3).eval()


def passes(model: Any, *, quick: bool) -> list[Any]:
    """Return the logits of a padded batch's opening and of tokens after it; half of it leaves midway."""
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(8, 60, (4, 7), generator=generator)
    mask = torch.ones_like(tokens)
    mask[0, :3] = 0
    cache, found = None, []
    with torch.inference_mode():
        for number in range(ROOM + 12):
            out = model(input_ids=tokens, attention_mask=mask, past_key_values=cache, use_cache=True)
            if cache is None and quick:
                make_room(out.past_key_values)
            cache = out.past_key_values
            found.append(out.logits[:, -1])
            tokens = torch.randint(8, 60, (len(tokens), 1), generator=generator)
            mask = torch.cat([mask, torch.ones_like(tokens)], dim=-1)
            if number == 6:
                kept = torch.tensor([0, 3])
                cache.reorder_cache(kept)
                tokens, mask = tokens[kept], mask[kept]
    return found


def test_quick_passes_give_the_same_logits(model: Any) -> None:
    plain = passes(model, quick=False)
    with grouped_attention(model):
        quick = passes(model, quick=True)
    assert max(float((a - b).abs().max()) for a, b in zip(plain, quick, strict=True)) < 1e-5


def test_a_model_attends_as_before_afterwards(model: Any) -> None:
    before = vars(model.config)[FIELD]
    with grouped_attention(model):
        assert vars(model.config)[FIELD] == NAME
    assert vars(model.config)[FIELD] == before == "sdpa"


def test_layers_that_grow_by_copying_get_room_and_others_stay(model: Any) -> None:
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([[9, 10, 11]]), past_key_values=DynamicCache(config=model.config))
    before = [type(layer) for layer in out.past_key_values.layers]
    make_room(out.past_key_values)
    kinds = [type(layer) for layer in out.past_key_values.layers]
    assert [kind is SpaciousLayer for kind in kinds] == [True, False, True, True]
    assert kinds[1] is before[1]
