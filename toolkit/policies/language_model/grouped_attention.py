"""Attention of one new token a conversation, where several heads share keys: without copying these.

Transformers repeats keys and values for every head that shares them, as long as there is a mask: token by
token that is most of the work. Here the heads that share keys are as many queries of one head.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "grouped_sdpa"
_SDPA = "sdpa"
# The setter without the underscore checks what the Hub offers.
_FIELD = "_attn_implementation"


def attend(  # noqa: PLR0917 - the interface's
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Any, None]:
    """Return what attention gives: the same numbers as `sdpa` of transformers, but for their last digits.

    Args:
        module: the layer.
        query: of shape (batch, heads, tokens, size).
        key: of shape (batch, groups of heads, length, size).
        value: as `key`.
        attention_mask: of shape (batch, 1, tokens, length); None leaves nothing out.
        scaling: of the products of queries and keys.
        options: others of the interface.

    Returns:
        What is attended to, of shape (batch, tokens, heads, size); no weights.
    """
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    batch, heads, tokens, size = query.shape
    is_plain = tokens == 1 and options.get("position_bias") is None
    if not is_plain or (attention_mask is not None and attention_mask.shape[1] > 1):
        found: tuple[Any, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
        return found
    grouped = query.reshape(batch, key.shape[1], heads // key.shape[1], size)
    attended = scaled_dot_product_attention(grouped, key, value, attn_mask=attention_mask, scale=scaling)
    return attended.reshape(batch, 1, heads, size), None


@contextmanager
def grouped_attention(model: Any) -> Iterator[None]:
    """Let a model in evaluation mode attend so, where it would use `sdpa`."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    config = model.config.get_text_config()
    before = getattr(config, _FIELD, None)
    if before != _SDPA:
        yield
        return
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    setattr(config, _FIELD, NAME)
    try:
        yield
    finally:
        setattr(config, _FIELD, before)
