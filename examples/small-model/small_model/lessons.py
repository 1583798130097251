"""What a small model is taught: conversations of the reference agent, drills, sums, and copying.

A lesson is a task that no pool has, played by the reference agent and written as the model's own
conversation. Every batch is a function of its kind, its number and the seed alone.

Copying comes first: to call a tool with an order's number is to find the number above and to repeat it, and a
small model finds out how only where that is all there is to do. A batch of copying is a few short runs of
tokens in random order, over and over: after a run's first token, the rest of it can be known. When that is
learned, half of the rows have runs with the same tokens between their own, as records have the names of their
fields: there the last token is not enough to know the next. Last, rows are four times as long.

Drills come next: one call with what its arguments were read from, and nothing else. In a whole conversation
the one word that says how to ship stands among hundreds, and is asked for once. Sums are drills of their own.
"""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import cycle, pairwise
from typing import Any, NamedTuple

from small_model.template import ASSISTANT, CALL, END, IS
from small_model.thoughts import said_of, thoughts
from toolkit.lab.episodes.agents import watched_reference
from toolkit.lab.episodes.desk import Agent, Answer, MakeCall
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.language_model.conversation import as_text, tool_call
from toolkit.lab.tasks.generator import PENCE, PRICE, generate
from toolkit.lab.tasks.pools import POOLS
from toolkit.lab.tasks.task import Task
from toolkit.lab.tasks.vocabulary import SURNAMES
from toolkit.lab.training.rows import POOL
from toolkit.noise.regimes import REGIMES, Regime
from toolkit.seeds import Stream, derive

CANDIDATES = 300_000
"""Tasks to choose from, beyond those of the pool."""
REGIMES_TAUGHT = ("clean", "clean", "clean", "faults_p025", "faults_p025")
SIZES = {1: 12, 2: 5, 3: 4}
"""Requests in a task → lessons in a batch: about as many tokens in each."""
BLOCK = 4
"""Batches that are made together: their lessons are shared out by length, so that little is padding."""
SHORT = {"reason": "asked", "summary": "noted"}
"""Free text is graded by nobody: the model says one word."""
ELSE_WEIGHT = 0.05
"""Weight of what the model reads, beside 1 for what it says: nobody can foretell most of it."""
CHOICE_WEIGHT = 4.0
"""Weight of the first word of an answer, of a tool's name and of an argument's value: one word that is chosen
stands beside dozens that are copied."""
COPY_TOKENS = 2688
"""Tokens of a batch of copying."""
SHORT_COPY, LONG_COPY = 56, 224
PLAIN, NEAR = 350, 600
"""Batches of copying without fields, and of short rows: begun with more, copying is not found out."""
SUMS = 64
"""Sums in a batch."""
DRILLS, DRILL_BLOCK = 18, 20
"""Drills in a batch, and batches of them that are made together."""
SLOW = "schedule_shipment"
"""Tool that half of the drills are about: which of three words says how to ship is the last thing learned."""
DRILLED = 600
"""Conversations that a block of drills is chosen from."""
ALONE = 2
"""Messages of a drill that has nothing to read but the task."""
_CONSONANTS = (*"bcdfghjklmnprstvwz", "br", "ch", "kl", "ll", "nt", "rt", "sch", "st", "th", "tr", "tz")
_VOWELS = (*"aeiouy", "aa", "ei", "ia", "ou")
_ENDINGS = (*"adeiklmnorstyz", "ck", "er", "ez", "ini", "lt", "ova", "sen", "son", "sson", "tti")


class Lesson(NamedTuple):
    """Tokens, and the weight that the prediction of each has in the loss."""

    tokens: list[int]
    weights: list[float]


def lesson_batch(
    tokenizer: Any, seed: int, number: int, requests: tuple[int, ...], *, strange: bool = False
) -> list[Lesson]:
    """Return a batch of conversations."""
    block, at = divmod(number, BLOCK)
    wanted = requests[block % len(requests)]
    conversations = _block(seed, block, wanted, strange=strange)
    size = SIZES[wanted]
    lessons = sorted((lesson_of(tokenizer, talk) for talk in conversations), key=lambda one: len(one.tokens))
    order = Stream(derive("lessons/v1", seed, block, "order")).shuffled(range(BLOCK))
    first = order[at] * size
    return lessons[first : first + size]


def copying_batch(tokenizer: Any, seed: int, number: int) -> list[Lesson]:
    """Return a batch of copying."""
    stream = Stream(derive("copying/v1", seed, number))
    # All tokens, not those of numbers alone: what is never said loses its embedding to what is.
    tokens = range(len(tokenizer.all_special_ids), len(tokenizer))
    length = SHORT_COPY if number < NEAR else LONG_COPY
    rows = range(COPY_TOKENS // length)
    return [_copying(stream, tokens, length, has_fields=number >= PLAIN) for _ in rows]


def drill_batch(tokenizer: Any, seed: int, number: int, *, strange: bool = False) -> list[Lesson]:
    """Return a batch of drills: half about `schedule_shipment`, the others about each tool alike."""
    block, at = divmod(number, DRILL_BLOCK)
    drills = _drill_block(seed, block, strange=strange)[at * DRILLS : (at + 1) * DRILLS]
    return [_drill(tokenizer, messages) for messages in drills]


def sums_batch(tokenizer: Any, seed: int, number: int) -> list[Lesson]:
    """A batch of sums: what all pieces of a product cost, worked out aloud, and the call that says it."""
    stream = Stream(derive("sums/v1", seed, number))
    return [_sum(tokenizer, stream) for _ in range(SUMS)]


def drills_of(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the calls of a conversation that have arguments, each with what these were read from alone."""
    drills = []
    for at in range(1, len(messages), 2):
        values = messages[at]["tool_calls"][0]["function"]["arguments"].values()
        if values:
            read = {_read_at(messages[:at], str(value)) for value in values} - {0}
            kept = [message for first in sorted(read) for message in messages[first - 1 : first + 1]]
            drills.append([messages[0], *kept, messages[at]])
    return drills


def with_strangers(messages: list[dict[str, Any]], stream: Stream) -> list[dict[str, Any]]:
    """Return a conversation about people of other names, made up.

    Every pool has surnames of its own: a model that had met those of one would misspell those of another.
    """
    text = json.dumps(messages, ensure_ascii=False)
    for surname in SURNAMES[POOL]:
        if surname.lower() in text.lower():
            stranger = "".join(
                stream.choice(_CONSONANTS) + stream.choice(_VOWELS) for _ in range(stream.between(1, 3))
            ) + stream.choice(_ENDINGS)
            text = re.sub(rf"\b{surname}\b", stranger.capitalize(), text)
            text = re.sub(rf"(?<=\.){surname.lower()}(?=[0-9]*@)", stranger, text)
    found: list[dict[str, Any]] = json.loads(text)
    return found


def render(tokenizer: Any, messages: list[dict[str, Any]]) -> str:
    """Return a conversation as the chat template writes it."""
    return str(tokenizer.apply_chat_template(messages, tokenize=False))


def conversation(
    task: Task,
    regime: Regime,
    schedule_seed: int,
    watched: Callable[[Callable[[int], None]], Agent] = watched_reference,
    *,
    failed: bool = False,
) -> list[dict[str, Any]] | None:
    """Return how an agent plays a task, as a conversation up to its last call."""
    made: list[str] = []
    starts: list[int] = []

    def agent(prompt: str, call: MakeCall) -> None:
        def counted(tool: str, arguments: dict[str, Any]) -> Answer:
            made.append(tool)
            return call(tool, arguments)

        watched(lambda _: starts.append(len(made)))(prompt, counted)

    episode = play(task, regime, schedule_seed, agent, traced=True)
    if not (episode.true_success or failed):
        return None
    messages: list[dict[str, Any]] = [{"role": "user", "content": task.prompt}]
    for call, said in zip(episode.trace or (), thoughts(episode, starts), strict=True):
        wanted = {} if call.tool == "finish" else call.arguments
        arguments = {name: SHORT.get(name, value) for name, value in wanted.items()}
        messages += [
            {"role": "assistant", "content": said, "tool_calls": [tool_call("0", call.tool, arguments)]},
            {"role": "tool", "name": call.tool, "content": as_text(call.answer)},
        ]
    return messages[:-1]


def sample_conversations(seed: int, count: int) -> list[list[dict[str, Any]]]:
    """Return conversations of tasks of any size: what a tokenizer is made from."""
    stream = Stream(derive("lessons/v1", seed, "tokenizer"))
    return [_conversation(stream) for _ in range(count)]


@lru_cache(maxsize=1)
def _block(seed: int, block: int, wanted: int, *, strange: bool) -> list[list[dict[str, Any]]]:
    stream = Stream(derive("lessons/v1", seed, block))
    talks = [_conversation(stream, wanted) for _ in range(BLOCK * SIZES[wanted])]
    return [with_strangers(talk, stream) for talk in talks] if strange else talks


def _conversation(stream: Stream, wanted: int | None = None) -> list[dict[str, Any]]:
    """Play the next task of a stream that succeeds, of a number of requests where one is wanted."""
    while True:
        task = generate(POOL, POOLS[POOL].size + stream.below(CANDIDATES), 0)
        if wanted is None or len(task.templates) == wanted:
            regime = REGIMES[stream.choice(REGIMES_TAUGHT)]
            played = conversation(task, regime, stream.word())
            if played is not None:
                return played


def lesson_of(tokenizer: Any, messages: list[dict[str, Any]]) -> Lesson:
    """Return a conversation as a lesson: what the model says weighs more than what it reads."""
    tokens = tokenizer(render(tokenizer, messages))["input_ids"]
    start, end, call, given = tokenizer.convert_tokens_to_ids([ASSISTANT, END, CALL, IS])
    special = set(tokenizer.all_special_ids)
    weights, weight = [], ELSE_WEIGHT
    for before, token in pairwise((end, *tokens)):
        weights.append(weight)
        if token in (start, call, given):
            weight = CHOICE_WEIGHT
        elif token == end:
            weight = ELSE_WEIGHT
        elif weight == CHOICE_WEIGHT and (token in special or before == start):
            weight = 1.0
    return Lesson(tokens, weights)


@lru_cache(maxsize=1)
def _drill_block(seed: int, block: int, *, strange: bool) -> list[list[dict[str, Any]]]:
    """Return the drills of a block of batches, those of a batch about as long as each other."""
    stream = Stream(derive("drills/v1", seed, block))
    by_kind: dict[tuple[str, bool], list[list[dict[str, Any]]]] = {}
    for _ in range(DRILLED):
        talk = _conversation(stream, 1)
        for drill in drills_of(with_strangers(talk, stream) if strange else talk):
            kind = (drill[-1]["tool_calls"][0]["function"]["name"], strange and len(drill) == ALONE)
            if not (strange and _is_reckoned(drill)):
                by_kind.setdefault(kind, []).append(drill)
    kinds = sorted(by_kind)
    kinds += [kind for kind in kinds if kind[0] == SLOW] * (len(kinds) // 2)
    # In turns: what comes again soon is learned by heart.
    turns = {kind: cycle(stream.shuffled(drills)) for kind, drills in by_kind.items()}
    chosen = [next(turns[stream.choice(kinds)]) for _ in range(DRILL_BLOCK * DRILLS)]
    chosen.sort(key=lambda drill: sum(len(message["content"]) for message in drill))
    order = stream.shuffled(range(DRILL_BLOCK))
    return [drill for at in order for drill in chosen[at * DRILLS : (at + 1) * DRILLS]]


def _sum(tokenizer: Any, stream: Stream) -> Lesson:
    """Weigh what has to be reckoned: not the price, and not the tool."""
    quantity, cents = stream.between(2, 4), 100 * stream.between(*PRICE) + stream.choice(PENCE)
    call = tool_call("0", "issue_refund", {"amount_cents": quantity * cents})
    said = {"role": "assistant", "content": f" {said_of(quantity, cents)}", "tool_calls": [call]}
    tokens = tokenizer(render(tokenizer, [said]))["input_ids"]
    given = tokens.index(tokenizer.convert_tokens_to_ids(":")) + 1
    return Lesson(tokens, [0.0] * given + [1.0] * (len(tokens) - given))


def _read_at(messages: list[dict[str, Any]], value: str) -> int:
    """Return which message a value was read from: the first, or the newest answer that has it."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(value)}(?![\w-])")
    if pattern.search(messages[0]["content"]):
        return 0
    answers = range(len(messages) - 1, 0, -2)
    return next((at for at in answers if pattern.search(messages[at]["content"])), 0)


def _is_reckoned(drill: list[dict[str, Any]]) -> bool:
    """Return whether an amount stands nowhere as it is, in cents or in dollars, and was not worked out."""
    amount = drill[-1]["tool_calls"][0]["function"]["arguments"].get("amount_cents")
    if amount is None or "unit_price_cents" in drill[-1]["content"]:
        return False
    stated = re.compile(rf"(?<![\w.-])({amount}|{amount // 100}\.{amount % 100:02})(?![\w-])")
    return not any(stated.search(message["content"]) for message in drill[:-1])


def _drill(tokenizer: Any, messages: list[dict[str, Any]]) -> Lesson:
    """Weigh what is said before the call, and its arguments: which tool is called, a drill does not tell."""
    tokens = tokenizer(render(tokenizer, messages))["input_ids"]
    start, call, given = tokenizer.convert_tokens_to_ids([ASSISTANT, CALL, IS])
    begins = len(tokens) - tokens[::-1].index(start)
    calls = tokens.index(call, begins) + 1
    says = tokens.index(given, calls) + 1
    return Lesson(
        tokens,
        [0.0] * begins
        + [1.0] * (calls - begins)
        + [0.0] * (says - calls)
        + [CHOICE_WEIGHT] * (len(tokens) - says),
    )


def _copying(stream: Stream, tokens: range, length: int, *, has_fields: bool) -> Lesson:
    has_fields = has_fields and stream.below(2) == 1
    fields = [stream.choice(tokens) for _ in range(stream.between(1, 3))] if has_fields else []
    most = 4 * length // SHORT_COPY
    runs = [_run(stream, tokens, fields) for _ in range(stream.between(most // 2, most))]
    lesson = Lesson([], [])
    seen: set[int] = set()
    while len(lesson.tokens) < length:
        at = stream.below(len(runs))
        known = float(at in seen)
        seen.add(at)
        lesson.tokens.extend(runs[at])
        lesson.weights.extend([0.0, *[known] * (len(runs[at]) - 1)])
    return Lesson(lesson.tokens[:length], lesson.weights[:length])


def _run(stream: Stream, tokens: range, fields: list[int]) -> list[int]:
    """Return tokens to be copied, with what all runs have in common between them."""
    own = [stream.choice(tokens) for _ in range(stream.between(2, 3) if fields else stream.between(3, 6))]
    return [token for one in own for token in (one, *fields)]
