"""Make two untrained models for lm_eval's `hf`, in folders: `python models.py FOLDER`. They know nothing."""

import string
import sys
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

SIZES = {"narrow": 16, "wide": 64}
END = "<end>"
LETTERS = {letter: number for number, letter in enumerate([END, *string.printable])}


def main(folder: Path) -> None:
    """Save both models with a tokenizer that spells."""
    spelling = Tokenizer(models.WordLevel(LETTERS, unk_token=END))
    spelling.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=spelling, eos_token=END, pad_token=END)
    for name, width in SIZES.items():
        torch.manual_seed(0)
        shape = GPT2Config(
            vocab_size=len(LETTERS),
            n_positions=128,
            n_embd=width,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
        GPT2LMHeadModel(shape).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
