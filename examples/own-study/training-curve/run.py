"""A training curve by TRL's GRPOTrainer, on a processor: `python run.py FOLDER SEED...`.

The model is a stand-in: two layers that spell, made on the spot and trained on nothing before. It is rewarded
for the vowels that it writes, at two learning rates.
"""

import shutil
import string
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

ARMS = {"slow": 0.003, "fast": 0.01}
PROMPTS = ("sing:", "hum:", "shout:", "whisper:")
END = "<end>"
LETTERS = {letter: number for number, letter in enumerate([END, *string.ascii_lowercase, ":"])}


def vowels(completions: list[str], **_: Any) -> list[float]:
    """Reward the share of vowels."""
    return [sum(text.count(vowel) for vowel in "aeiou") / max(len(text), 1) for text in completions]


def untrained(seed: int) -> tuple[Any, Any]:
    """Return a model and its tokenizer."""
    spelling = Tokenizer(models.WordLevel(LETTERS, unk_token=END))
    spelling.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=spelling, eos_token=END, pad_token=END)
    torch.manual_seed(seed)
    shape = GPT2Config(
        vocab_size=len(LETTERS),
        n_positions=32,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(shape), tokenizer


def train(folder: Path, rate: float, seed: int) -> None:
    """Train a run. Its name is the time of its launch, which TRL writes nowhere."""
    model, tokenizer = untrained(seed)
    options = GRPOConfig(
        output_dir=str(folder),
        run_name=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seed=seed,
        learning_rate=rate,
        max_steps=12,
        num_generations=8,
        per_device_train_batch_size=32,
        max_completion_length=12,
        log_completions=True,
        logging_steps=4,
        report_to=[],
        use_cpu=True,
        save_only_model=True,
        disable_tqdm=True,
    )
    rows = Dataset.from_dict({"prompt": list(PROMPTS)})
    GRPOTrainer(
        model=model, reward_funcs=vowels, args=options, train_dataset=rows, processing_class=tokenizer
    ).train()


def main(target: Path, seeds: list[int]) -> None:
    """Train both arms under each seed, and keep what they wrote without the weights."""
    for seed in seeds:
        for arm, rate in ARMS.items():
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / f"{arm}-s{seed}"
                train(folder, rate, seed)
                for pattern in ("completions/*", "checkpoint-*/training_args.bin"):
                    for path in sorted(folder.glob(pattern)):
                        kept = target / path.relative_to(scratch)
                        kept.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(path, kept)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(seed) for seed in sys.argv[2:]])
