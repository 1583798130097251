"""A model of Qwen3.5's architecture that a laptop trains: its tokenizer and untrained weights.

It is there to run the whole protocol, tools, masks, adapters and all, where no GPU is. It is no miniature of
a real model: it knows the back office's words and nothing else, and is taught the work by the reference agent
(`small_model.teaching`).

Numbers are cut into pairs of digits from the right, identifiers from the left: their first token is one of a
hundred, and tells what is copied. Of a date, year and month are one token and the day is another. The point
between dollars and cents is not read: 12.50 dollars are the tokens of 1250 cents, one after the other.
"""

import re
from collections.abc import Iterable
from typing import Any

from small_model.template import (
    CHAT_TEMPLATE,
    END,
    LINE_MARKS,
    ORDER_MARKS,
    PAD,
    RESPONSE_TEMPLATE,
    SPECIAL,
)

VOCABULARY = 900
CONTEXT = 4096
EMBEDDING_SPREAD = 0.1
"""Standard deviation of untrained embeddings: transformers' 0.02 is so little that what is said first, a few
tokens, draws all others to one place, where a word cannot be told from a word."""
_PRINTABLE = tuple(map(chr, range(33, 127)))

# The month of a date: one token.
_MONTH = r"20[0-9]{2}-[0-9]{2}-"
# Pairs of digits: O-94250 is 94, 25, 0 behind its letter, the number 94250 is 9, 42, 50.
_PAIRS = (
    _MONTH + r"|(?<=[A-Z]-)[0-9]{2}|(?<=[A-Z]-[0-9]{2})[0-9]{1,2}|(?<=[A-Z]-[0-9]{4})[0-9]{1,2}"
    r"|[0-9]{1,2}(?=(?:[0-9]{2})*(?![0-9]))"
)
_WORDS = _MONTH + r"|@[a-z.]+| ?[A-Z]?[a-z_]+| ?[A-Z]{1,2}-(?![A-Za-z])| ?[A-Z]| ?[^A-Za-z0-9 ]"
# A small model copies what follows, and does not learn to go on behind a point.
_POINT = r"(?<=[0-9])\.(?=[0-9]{2}(?![0-9]))"
# A number or an identifier is the same tokens with and without a space before it.
_BEFORE_NUMBERS = rf"(?:^|(?<=[a-z_,>{re.escape(LINE_MARKS + ORDER_MARKS)}])) (?=[0-9]|[A-Z]{{1,2}}-[0-9])"


def make_tokenizer(texts: Iterable[str]) -> Any:
    """Return a tokenizer trained on rendered conversations."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    left_out = (_BEFORE_NUMBERS, _POINT)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(pattern), "") for pattern in left_out]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PAIRS), "isolated"),
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=[*_PRINTABLE, "Ġ", "Ċ"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast: Any = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        extra_special_tokens=[t for t in SPECIAL if t not in (END, PAD)],
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.response_template = RESPONSE_TEMPLATE
    return fast


def make_model(tokenizer: Any, seed: int) -> Any:
    """Return the untrained model: three layers of full attention, one of linear attention after the first."""
    import torch
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    config = Qwen3_5TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=104,
        intermediate_size=208,
        num_hidden_layers=4,
        layer_types=["full_attention", "linear_attention", "full_attention", "full_attention"],
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        linear_num_key_heads=4,
        linear_num_value_heads=4,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        # Copying starts with knowing which token stood before: all of a small head turns with the position.
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0},
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3_5ForCausalLM(config)
        torch.nn.init.normal_(model.get_input_embeddings().weight, std=EMBEDDING_SPREAD)
    return model
