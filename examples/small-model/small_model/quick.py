"""Quicker linear attention and decoding on a processor: `python -m small_model.quick ARGUMENTS`.

Both replace functions of transformers, which is why they do not come with the package. They change the last
digits of a model's sums, and study `tiny-lm` was played with them: whoever wants its bits again, on the
machine that it was played on, runs `python -m small_model.quick study run tiny-lm`.

What the tokens of a chunk owe to each other in the gated delta rule is a triangular system of equations (Yang
et al. 2024, "Gated Delta Networks"). Transformers solves it row by row; here it is one call of
`torch.linalg.solve_triangular`. For one new token a conversation, transformers repeats keys and values for
every head that shares them, as long as there is a mask; here the heads that share keys are as many queries of
one head.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CHUNK = 32
SMALLEST = 1e-6
"""Under the root of a squared length: transformers' number."""


def chunked_delta_rule(
    query: Any,
    key: Any,
    value: Any,
    *,
    g: Any,
    beta: Any,
    initial_state: Any = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    **_: Any,
) -> tuple[Any, Any]:
    """Return what linear attention gives: the numbers of transformers, but for their last digits."""
    import torch

    length, size, dtype = query.shape[1], value.shape[-1], query.dtype
    if query.shape[2] < value.shape[2]:
        sharing = value.shape[2] // query.shape[2]
        query, key = query.repeat_interleave(sharing, 2), key.repeat_interleave(sharing, 2)
    if use_qk_l2norm_in_kernel:
        query, key = _of_length_one(query), _of_length_one(key)
    query = _chunks(query) * query.shape[-1] ** -0.5
    key, value, beta = _chunks(key), _chunks(value), _chunks(beta.unsqueeze(-1))
    left = _chunks(g.unsqueeze(-1)).cumsum(-2)
    # Twice: above the diagonal, what has not happened yet would overflow.
    between = (left - left.transpose(-1, -2)).tril().exp().tril()
    owed = (key * beta) @ key.transpose(-1, -2) * between
    written = torch.cat((value * beta, key * beta * left.exp()), -1)
    written = torch.linalg.solve_triangular(owed, written, upper=False, unitriangular=True)
    inside = query @ key.transpose(-1, -2) * between
    last = left[..., -1:, :]
    kept = (key * (last - left).exp()).transpose(-1, -2)
    state = (
        query.new_zeros(*key.shape[:2], key.shape[-1], size)
        if initial_state is None
        else initial_state.float()
    )
    read = []
    for asks, within, writes, keeps, leaves in zip(
        *(part.unbind(2) for part in (query * left.exp(), inside, written, kept, last.exp())), strict=True
    ):
        new = writes[..., :size] - writes[..., size:] @ state
        read.append(asks @ state + within @ new)
        state = state * leaves + keeps @ new
    found = torch.cat(read, 2)[:, :, :length].transpose(1, 2).contiguous().to(dtype)
    return found, (state if output_final_state else None)


def attend(  # noqa: PLR0917 - the interface's
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Any, None]:
    """Return what attention gives: the same numbers as `sdpa` of transformers, but for their last digits."""
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    batch, heads, tokens, size = query.shape
    is_plain = tokens == 1 and options.get("position_bias") is None
    if not is_plain or (attention_mask is not None and attention_mask.shape[1] > 1):
        attended: tuple[Any, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
        return attended
    grouped = query.reshape(batch, key.shape[1], heads // key.shape[1], size)
    attended = scaled_dot_product_attention(grouped, key, value, attn_mask=attention_mask, scale=scaling)
    return attended.reshape(batch, 1, heads, size), None


@contextmanager
def quick() -> Iterator[None]:
    """Let transformers compute so."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.qwen3_5 import modeling_qwen3_5

    rule = modeling_qwen3_5.torch_chunk_gated_delta_rule
    modeling_qwen3_5.torch_chunk_gated_delta_rule = chunked_delta_rule
    ALL_ATTENTION_FUNCTIONS.register("sdpa", attend)
    try:
        yield
    finally:
        modeling_qwen3_5.torch_chunk_gated_delta_rule = rule
        ALL_ATTENTION_FUNCTIONS.register("sdpa", sdpa_attention_forward)


def _of_length_one(vectors: Any) -> Any:
    return vectors * (vectors.square().sum(-1, keepdim=True) + SMALLEST).rsqrt()


def _chunks(parts: Any) -> Any:
    """Return (batch, tokens, heads, size) as (batch, heads, chunks, tokens of a chunk, size), in float32."""
    from torch.nn.functional import pad

    parts = parts.transpose(1, 2).float()
    return pad(parts, (0, 0, 0, -parts.shape[2] % CHUNK)).unflatten(2, (-1, CHUNK))


if __name__ == "__mp_main__":  # a process that the command started: probes are scored there
    _QUICK = quick()
    _QUICK.__enter__()

if __name__ == "__main__":
    from toolkit.cli.main import main

    with quick():
        main()
