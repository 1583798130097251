"""Linear attention in chunks against transformers' own, and against its recurrence token by token."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.training.stack import require_trainer
from toolkit.training.language_model.delta_rule import chunked_delta_rule, quick_delta_rule


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
    from transformers.models.qwen3_5 import modeling_qwen3_5 as theirs

    before = theirs.torch_chunk_gated_delta_rule
    with quick_delta_rule():
        assert theirs.torch_chunk_gated_delta_rule is chunked_delta_rule
    assert theirs.torch_chunk_gated_delta_rule is before


def test_heads_may_share_queries_and_keys() -> None:
    require_trainer()
    import torch

    (query, key, value), gates = _drawn(40)
    shared = chunked_delta_rule(query[:, :, :1], key[:, :, :1], value, **gates)[0]
    repeated = [part[:, :, :1].expand(-1, -1, 3, -1) for part in (query, key)]
    torch.testing.assert_close(shared, chunked_delta_rule(*repeated, value, **gates)[0])
