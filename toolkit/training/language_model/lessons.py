"""What a small model is taught: conversations of the reference agent, and copying.

A lesson is a task that no pool has, played by the reference agent and written as the model's own
conversation. Every batch is a function of its number and the seed alone.

Copying comes first: to call a tool with an order's number is to find the number above and to repeat it, and a
small model finds out how only where that is all there is to do. A batch of copying is a few short runs of
tokens in random order, over and over: after a run's first token, the rest of it can be known.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.episodes.agents import reference
from toolkit.episodes.episode import play
from toolkit.noise.regimes import REGIMES
from toolkit.policies.language_model.conversation import as_text, tool_call
from toolkit.seeds import Stream, derive
from toolkit.tasks.generator import generate
from toolkit.tasks.pools import POOLS
from toolkit.training.language_model.small import ASSISTANT, END
from toolkit.training.rows import POOL

if TYPE_CHECKING:
    from toolkit.episodes.episode import Episode

CANDIDATES = 300_000
"""Tasks to choose from, beyond those of the pool."""
REGIMES_TAUGHT = ("clean", "clean", "clean", "faults_p025", "faults_p025")
SIZES = {1: 12, 2: 5, 3: 4}
"""Requests in a task → lessons in a batch: about as many tokens in each."""
BLOCK = 4
"""Batches that are made together: their lessons are shared out by length, so that little is padding."""
SHORT = {"reason": "asked", "summary": "noted"}
"""Free text is graded by nobody: the model says one word."""
ELSE_WEIGHT = 0.3
"""Weight of what the model reads, beside 1 for what it says: answers repeat what it will have to copy."""
COPY_ROWS, COPY_LENGTH = 48, 56


class Lesson(NamedTuple):
    """Tokens, and the weight that the prediction of each has in the loss."""

    tokens: list[int]
    weights: list[float]


def lesson_batch(tokenizer: Any, seed: int, number: int, requests: tuple[int, ...]) -> list[Lesson]:
    """Return a batch of conversations.

    Args:
        tokenizer: of the small model.
        seed: of all lessons.
        number: of the batch.
        requests: how many requests its tasks may have; blocks of batches take turns.
    """
    block, at = divmod(number, BLOCK)
    wanted = requests[block % len(requests)]
    conversations = _block(seed, block, wanted)
    size = SIZES[wanted]
    lessons = sorted((_lesson(tokenizer, talk) for talk in conversations), key=lambda one: len(one.tokens))
    order = Stream(derive("lessons/v1", seed, block, "order")).shuffled(range(BLOCK))
    first = order[at] * size
    return lessons[first : first + size]


def copying_batch(tokenizer: Any, seed: int, number: int, *, numbers_only: bool) -> list[Lesson]:
    """Return a batch of copying.

    Args:
        tokenizer: of the small model.
        seed: of all lessons.
        number: of the batch.
        numbers_only: whether its tokens are those that numbers are written with, or any.
    """
    stream = Stream(derive("copying/v1", seed, number))
    any_token = range(len(tokenizer.all_special_ids), len(tokenizer))
    tokens = _number_tokens(tokenizer) if numbers_only else any_token
    return [_copying(stream, tokens) for _ in range(COPY_ROWS)]


def render(tokenizer: Any, messages: list[dict[str, Any]]) -> str:
    """Return a conversation as the chat template writes it."""
    return str(tokenizer.apply_chat_template(messages, tokenize=False))


def conversation(episode: Episode) -> list[dict[str, Any]]:
    """Return a traced episode as a conversation, up to its last call."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": episode.task.prompt}]
    for call in episode.trace or ():
        wanted = {} if call.tool == "finish" else call.arguments
        arguments = {name: SHORT.get(name, value) for name, value in wanted.items()}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [tool_call("0", call.tool, arguments)]},
            {"role": "tool", "name": call.tool, "content": as_text(call.answer)},
        ]
    return messages[:-1]


def sample_conversations(seed: int, count: int) -> list[list[dict[str, Any]]]:
    """Return conversations of tasks of any size: what a tokenizer is made from."""
    stream = Stream(derive("lessons/v1", seed, "tokenizer"))
    found: list[list[dict[str, Any]]] = []
    while len(found) < count:
        episode = _played(stream)
        if episode.true_success:
            found.append(conversation(episode))
    return found


@lru_cache(maxsize=1)
def _block(seed: int, block: int, wanted: int) -> list[list[dict[str, Any]]]:
    stream = Stream(derive("lessons/v1", seed, block))
    found: list[list[dict[str, Any]]] = []
    while len(found) < BLOCK * SIZES[wanted]:
        episode = _played(stream, wanted)
        if episode.true_success:
            found.append(conversation(episode))
    return found


def _played(stream: Stream, wanted: int | None = None) -> Episode:
    """Play the next task of a stream, of a number of requests where one is wanted."""
    while True:
        task = generate(POOL, POOLS[POOL].size + stream.below(CANDIDATES), 0)
        if wanted is None or len(task.templates) == wanted:
            regime = REGIMES[stream.choice(REGIMES_TAUGHT)]
            return play(task, regime, stream.word(), reference, traced=True)


def _lesson(tokenizer: Any, messages: list[dict[str, Any]]) -> Lesson:
    tokens = tokenizer(render(tokenizer, messages))["input_ids"]
    start, end = tokenizer.convert_tokens_to_ids([ASSISTANT, END])
    weights, says = [], False
    for token in tokens:
        weights.append(1.0 if says else ELSE_WEIGHT)
        says = token == start or (says and token != end)
    return Lesson(tokens, weights)


def _copying(stream: Stream, tokens: range | tuple[int, ...]) -> Lesson:
    runs = [[stream.choice(tokens) for _ in range(stream.between(3, 6))] for _ in range(stream.between(2, 4))]
    lesson = Lesson([], [])
    seen: set[int] = set()
    while len(lesson.tokens) < COPY_LENGTH:
        at = stream.below(len(runs))
        known = float(at in seen)
        seen.add(at)
        lesson.tokens.extend(runs[at])
        lesson.weights.extend([0.0, *[known] * (len(runs[at]) - 1)])
    return Lesson(lesson.tokens[:COPY_LENGTH], lesson.weights[:COPY_LENGTH])


@lru_cache(maxsize=1)
def _number_tokens(tokenizer: Any) -> tuple[int, ...]:
    vocabulary = tokenizer.get_vocab()
    return tuple(sorted(token for text, token in vocabulary.items() if re.fullmatch(r"[0-9]{1,2}", text)))
