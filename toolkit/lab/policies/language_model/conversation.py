"""Conversations: episodes that a language model plays, many at once, one turn of each after the other."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from toolkit.errors import UsageError
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import Episode, close
from toolkit.lab.tasks.task import Task
from toolkit.noise.regimes import Regime

INSTRUCTIONS = (
    "You work in the back office of a web shop. Do exactly what the message asks, with the tools, one call "
    "at a time. Answers can be late, cut short or out of date: look again where you are not sure. Call "
    "finish when all of it is done."
)
TURNS = 24
"""Most turns with tool calls in an episode, above every task's budget. Source: paper app:training."""
MAX_TOKENS = 6144
"""Most tokens of a conversation beyond its opening. Source: paper app:training."""


@dataclass(frozen=True)
class Turn:
    """What a model said in one turn."""

    calls: tuple[tuple[str, Any], ...]  # the calls it attempted, in order: name and arguments as decoded JSON
    text: str = ""  # what it said besides
    tokens: tuple[int, ...] = ()  # what was sampled; none where the engine does not give them
    cut: bool = False  # whether the turn ended at a limit of length


@dataclass
class Conversation:
    """An episode in progress, as a model sees it."""

    messages: list[dict[str, Any]]  # what was said so far, as the OpenAI chat format has it
    seed: int  # of what is sampled in it
    # The messages as an engine with a tokenizer continues them; empty until it has rendered them
    tokens: list[int] = field(default_factory=list)
    turns: int = 0  # turns taken
    opened: int = 0  # tokens of the messages that it started with
    # Position of each token that the model sampled → its log-probability, where the engine gives it
    said: dict[int, float] = field(default_factory=dict)


class OtherDesk(Protocol):
    """An episode in progress in another world than the back office."""

    ended: str | None  # as a desk's

    def call(self, tool: str, arguments: Any) -> Any:
        """Make a call and return its answer."""

    def close(self) -> Any:
        """Grade the episode as it stands; what is returned has the fields of `Episode`."""


class OtherTask(Protocol):
    """A task of another world than the back office."""

    @property
    def prompt(self) -> str:
        """What is asked, in words."""

    @property
    def instructions(self) -> str:
        """What a model is told before it."""

    def desk(self, regime: Regime, schedule_seed: int) -> OtherDesk:
        """Begin an episode."""


AnyTask = Task | OtherTask
AnyDesk = Desk | OtherDesk


class Play(NamedTuple):
    """One episode to play."""

    task: AnyTask  # what is to be done
    regime: Regime  # the noise
    schedule_seed: int  # seed of the schedule ω
    seed: int  # of what the policy samples
    shared: bool = False  # whether these are shared samples: every policy meets the same noise


class TurnTaker(Protocol):
    """Takes turns of conversations."""

    def turns(self, conversations: Sequence[Conversation]) -> list[Turn]:
        """Return one turn of each conversation; its seed and turn decide what is sampled."""


@runtime_checkable
class Player(Protocol):
    """Plays whole episodes, in whatever order it takes their turns."""

    def play(self, plays: Sequence[Play], *, max_turns: int, traced: bool = False) -> list[Episode]:
        """Return the episodes, in order; the seed of each decides what is sampled."""


def opening(prompt: str, instructions: str = INSTRUCTIONS) -> list[dict[str, Any]]:
    """Return the messages that a conversation about a task's prompt starts with."""
    return [{"role": "system", "content": instructions}, {"role": "user", "content": prompt}]


def opening_of(task: AnyTask) -> list[dict[str, Any]]:
    """Return the messages that a conversation about a task starts with."""
    return opening(task.prompt) if isinstance(task, Task) else opening(task.prompt, task.instructions)


def desk_of(task: AnyTask, regime: Regime, schedule_seed: int, *, traced: bool = False) -> AnyDesk:
    """Begin an episode of a task."""
    if isinstance(task, Task):
        return Desk(task, regime, schedule_seed, traced=traced)
    return task.desk(regime, schedule_seed)


def closed(desk: AnyDesk) -> Episode:
    """Grade a desk as it stands."""
    episode: Episode = close(desk) if isinstance(desk, Desk) else desk.close()
    return episode


def converse(
    engine: TurnTaker | Player, plays: Sequence[Play], *, max_turns: int = TURNS, traced: bool = False
) -> list[Episode]:
    """Play episodes side by side."""
    if any(play.shared for play in plays) and not getattr(engine, "shares_samples", False):
        raise cannot_share(type(engine).__name__)
    if isinstance(engine, Player):
        return engine.play(plays, max_turns=max_turns, traced=traced)
    desks = [desk_of(play.task, play.regime, play.schedule_seed, traced=traced) for play in plays]
    talks = [Conversation(opening_of(play.task), play.seed) for play in plays]
    hold(engine, talks, desks, max_turns=max_turns)
    return [closed(desk) for desk in desks]


def hold(
    engine: TurnTaker, talks: Sequence[Conversation], desks: Sequence[AnyDesk], *, max_turns: int
) -> None:
    """Hold conversations at their desks to their ends."""
    going = list(range(len(talks)))
    while going:
        turns = engine.turns([talks[at] for at in going])
        going = [
            at
            for at, turn in zip(going, turns, strict=True)
            if take_turn(talks[at], desks[at], turn) and talks[at].turns < max_turns
        ]


def cannot_share(engine: str) -> UsageError:
    """Return the error for an engine that does not let what it samples be shared between models."""
    return UsageError(
        "this engine cannot share its samples between models: it takes a seed, and no noise for every token",
        expected="transformers; or a scripted agent, which samples nothing",
        found=engine,
        remedy="take --engine transformers; or let every model sample its own: without --couple, and with "
        'sampling = "own" in a matrix',
    )


def context_too_small(opening_tokens: int, context: int) -> UsageError:
    """Return the error for a model whose context an opening fills."""
    problem = "the model's context is too small for the task and its tools"
    expected = f"more than {opening_tokens} tokens"
    remedy = "choose a model with a longer context"
    return UsageError(problem, expected=expected, found=f"{context} tokens", remedy=remedy)


def take_turn(talk: Conversation, desk: AnyDesk, turn: Turn) -> bool:
    """Make the calls of a turn and put their answers into the conversation; return whether it goes on."""
    talk.turns += 1
    calls = [
        tool_call(f"call-{talk.turns}-{number}", name, arguments)
        for number, (name, arguments) in enumerate(turn.calls)
    ]
    talk.messages.append(
        {"role": "assistant", "content": turn.text, **({"tool_calls": calls} if calls else {})}
    )
    for call, (name, arguments) in zip(calls, turn.calls, strict=True):
        if desk.ended is not None:
            return False
        content = as_text(desk.call(name, arguments))
        talk.messages.append({"role": "tool", "tool_call_id": call["id"], "name": name, "content": content})
    return bool(calls) and desk.ended is None


def tool_call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Return a tool call as the OpenAI chat format has it, its arguments decoded."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def as_text(answer: Any) -> str:
    """Return an answer as the text that a model reads."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
