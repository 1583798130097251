"""`python -m small_model.softening FOLDER`: the small model made less sure, so that training can choose.

The shipped model is so sure of what it says that most groups under one schedule are alike, and such a group
teaches nothing. Here it is shown tasks of one request under tool faults, some played by the reference agent,
others by the careless one, which takes every answer at face value and gives up at an error, others again by a
hasty one, which says that it is done a call too early. Afterwards it does now one, now the other.

Every batch is a function of the seed and its number. The tokenizer stays as it is, to the byte.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from small_model.command import teach
from small_model.lessons import CANDIDATES, conversation, lesson_of, with_strangers
from small_model.quick import quick
from small_model.teaching import Taught, learn, one_core_each, write
from toolkit.lab.episodes.agents import watched_careless, watched_reference
from toolkit.lab.policies.language_model.loading import load_chat, load_model, model_path
from toolkit.lab.tasks.generator import generate
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.training.rows import POOL
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import Stream, derive

MODEL = "small"
BATCHES, SIZE = 80, 16
CARELESS, HASTY = 30, 25
"""Percent of the demonstrations: the former tell faults from none, the latter leave something to learn where
there are none."""
REGIME = "faults_p025"
LEARNING_RATE = 1e-3


def soften(
    folder: Path, *, batches: int = BATCHES, seed: int = 0, watch: Callable[[Taught], None] = lambda _: None
) -> None:
    """Soften the shipped model, and write what comes of it to a folder."""
    import torch

    shipped = Path(model_path(MODEL))
    tokenizer, model = load_chat(str(shipped)).tokenizer, load_model(str(shipped))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    with quick(), one_core_each() as workers:
        for number in range(batches):
            batch = [lesson_of(tokenizer, talk) for talk in demonstrations(seed, number)]
            loss = learn(model, optimizer, batch, tokenizer.pad_token_id, workers)
            watch(Taught(number + 1, batches, loss))
    write(folder, model)
    for file in (*shipped.glob("tokenizer*"), *shipped.glob("*.jinja")):
        shutil.copy(file, folder)


def demonstrations(seed: int, number: int) -> list[list[dict[str, Any]]]:
    """Return a batch of conversations, those of the careless agent whatever came of them."""
    stream = Stream(derive("softening/v1", seed, number))
    return [_demonstration(stream) for _ in range(SIZE)]


def _demonstration(stream: Stream) -> list[dict[str, Any]]:
    kind = stream.below(100)
    is_careless, is_hasty = kind < CARELESS, CARELESS <= kind < CARELESS + HASTY
    agent = watched_careless if is_careless else watched_reference
    while True:
        task = generate(POOL, POOLS[POOL].size + stream.below(CANDIDATES), 0)
        if len(task.templates) == 1:
            played = conversation(task, REGIMES[REGIME], stream.word(), agent, failed=is_careless)
            if played is not None:
                *all_but_last, _, _, done = played
                return with_strangers([*all_but_last, done] if is_hasty else played, stream)


if __name__ == "__main__":
    teach("python -m small_model.softening", __doc__, soften, BATCHES)
