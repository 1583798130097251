"""Quicker linear attention and decoding, against transformers' own."""

import runpy
from typing import Any

import pytest
from small_model.quick import attend, chunked_delta_rule, quick
from small_model.untrained import make_model, make_tokenizer

from tests.conftest import SMALL_MODEL
from tests.unit.stack import require_trainer


def _drawn(tokens: int) -> tuple[list[Any], dict[str, Any]]:
    import torch

    torch.manual_seed(tokens)
    vectors = [torch.randn(2, tokens, 3, size, requires_grad=True) for size in (8, 8, 12)]
    gates = {"g": -torch.rand(2, tokens, 3), "beta": torch.rand(2, tokens, 3)}
    return vectors, {name: gate.requires_grad_() for name, gate in gates.items()}


@pytest.mark.parametrize("tokens", [1, 31, 32, 100, 150])
@pytest.mark.parametrize("has_state", [False, True])
def test_it_gives_what_transformers_gives_and_its_gradient(tokens: int, has_state: bool) -> None:
    require_trainer()
    import torch
    from transformers.models.qwen3_5 import modeling_qwen3_5 as theirs

    vectors, gates = _drawn(tokens)
    weights = torch.randn(2, tokens, 3, 12)
    options = {
        "initial_state": torch.randn(2, 3, 8, 12) if has_state else None,
        "output_final_state": True,
        "use_qk_l2norm_in_kernel": True,
    }
    found = []
    for rule in (
        chunked_delta_rule,
        theirs.torch_chunk_gated_delta_rule,
        theirs.torch_recurrent_gated_delta_rule,
    ):
        read, state = rule(*vectors, **gates, **options)
        gradient = torch.autograd.grad((read * weights).sum() + state.sum(), [*vectors, *gates.values()])
        found.append((read, state, *gradient))
    for other in found[1:]:
        for mine, other_one in zip(found[0], other, strict=True):
            torch.testing.assert_close(mine, other_one, rtol=1e-4, atol=1e-4)


def test_models_compute_so_inside_alone() -> None:
    require_trainer()
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.qwen3_5 import modeling_qwen3_5 as theirs

    before = theirs.torch_chunk_gated_delta_rule
    with quick():
        assert theirs.torch_chunk_gated_delta_rule is chunked_delta_rule
        assert ALL_ATTENTION_FUNCTIONS["sdpa"] is attend
    assert theirs.torch_chunk_gated_delta_rule is before
    assert ALL_ATTENTION_FUNCTIONS["sdpa"] is sdpa_attention_forward


def passes(model: Any) -> list[Any]:
    """Return the logits of a padded batch's opening and of tokens after it; half of it leaves midway."""
    import torch

    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(8, 60, (4, 7), generator=generator)
    mask = torch.ones_like(tokens)
    mask[0, :3] = 0
    cache, logits = None, []
    with torch.inference_mode():
        for number in range(12):
            out = model(input_ids=tokens, attention_mask=mask, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            logits.append(out.logits[:, -1])
            tokens = torch.randint(8, 60, (len(tokens), 1), generator=generator)
            mask = torch.cat([mask, torch.ones_like(tokens)], dim=-1)
            if number == 6:
                kept = torch.tensor([0, 3])
                cache.reorder_cache(kept)
                tokens, mask = tokens[kept], mask[kept]
    return logits


def test_quick_passes_give_the_same_logits() -> None:
    require_trainer()
    model = make_model(make_tokenizer(["a few words of a back office"]), 3).eval()
    plain = passes(model)
    with quick():
        quickly = passes(model)
    differences = [float((a - b).abs().max()) for a, b in zip(plain, quickly, strict=True)]
    assert 0 < max(differences) < 1e-5


def test_heads_may_share_queries_and_keys() -> None:
    require_trainer()
    import torch

    (query, key, value), gates = _drawn(40)
    shared = chunked_delta_rule(query[:, :, :1], key[:, :, :1], value, **gates)[0]
    repeated = [part[:, :, :1].expand(-1, -1, 3, -1) for part in (query, key)]
    torch.testing.assert_close(shared, chunked_delta_rule(*repeated, value, **gates)[0])


@pytest.mark.parametrize("name", ["__main__", "__mp_main__"])
def test_a_command_and_its_processes_compute_so(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    require_trainer()
    from transformers.models.qwen3_5 import modeling_qwen3_5 as theirs

    rules: list[Any] = []
    monkeypatch.setattr("toolkit.cli.main.main", lambda: rules.append(theirs.torch_chunk_gated_delta_rule))
    ran = runpy.run_path(str(SMALL_MODEL / "small_model" / "quick.py"), run_name=name)
    if name == "__mp_main__":
        rules.append(theirs.torch_chunk_gated_delta_rule)
        ran["_QUICK"].__exit__(None, None, None)
    assert rules == [ran["chunked_delta_rule"]]
