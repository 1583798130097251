"""Scripted rollouts: what a model is made to say, and what a desk of one's own makes of it.

A script is an agent. It is played on a desk of the test's own, under the schedule that the rollout ought to
have: what it called there is what the model says, token for token, and what became of that episode is what
the trainer has to record.
"""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from tests.unit.lab.training.language_model.small_model import turn_tokens
from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.desk import Agent, MakeCall
from toolkit.lab.episodes.episode import Episode, play
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES

reference = AGENTS["reference"]


def silent(prompt: str, call: MakeCall) -> None:
    """Call nothing."""


def hasty(prompt: str, call: MakeCall) -> None:
    """Finish at once."""
    call("finish", {})


def inventive(prompt: str, call: MakeCall) -> None:
    """Call a tool that there is not, then work."""
    call("look_up_everything", {"customer": "all"})
    reference(prompt, call)


def confused(prompt: str, call: MakeCall) -> None:
    """Call tools with arguments of other names, or without any, then work."""
    call("wait", {"minutes": 3})
    call("wait", {})
    reference(prompt, call)


def wordy(prompt: str, call: MakeCall) -> None:
    """Work, with every number written as text and every text of digits as a number."""

    def otherwise(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return call(tool, {name: _otherwise(value) for name, value in arguments.items()})

    reference(prompt, otherwise)


def stubborn(prompt: str, call: MakeCall) -> None:
    """Wait until the budget is spent, and once more."""
    while call("wait", {"seconds": 1}).get("error", {}).get("code") != "budget_exceeded":
        pass


def _otherwise(value: Any) -> Any:
    if isinstance(value, int):
        return str(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and value[0] != "0" else value


MIXED: tuple[Agent, ...] = (
    *(reference, inventive, hasty, confused),
    *(wordy, silent, stubborn, AGENTS["careless"]),
)
"""One script a slot."""


class Part(NamedTuple):
    """One rollout's script: its turns as tokens, its calls, and the episode that they make."""

    turns: tuple[tuple[int, ...], ...]
    calls: tuple[tuple[str, Any], ...]
    episode: Episode


def part(tokenizer: Any, agent: Agent, task: int, regime: str, seed: int) -> Part:
    """Return a script as one rollout has it."""
    episode = play(load_task(f"train:{task}"), REGIMES[regime], seed, agent, traced=True)
    calls = tuple((record.tool, record.arguments) for record in episode.trace)
    turns = [tuple(turn_tokens(tokenizer, call)) for call in calls]
    if episode.ended == "stopped":
        turns.append(tuple(turn_tokens(tokenizer, text="done")))
    return Part(tuple(turns), calls, episode)


class ScriptedModel:
    """What `speak` needs of a model; nearly all of its probability is on what is scripted.

    It says a turn wherever the last token that it read asks for one.
    """

    def __init__(self, tokenizer: Any, parts: Sequence[Part], context: int) -> None:
        import torch

        self._asks = tokenizer.convert_tokens_to_ids("<assistant>")
        self._rows = list(range(len(parts)))
        self._turns = [list(part.turns) for part in parts]
        self._saying: list[list[int]] = [[] for _ in parts]
        self._weight = torch.zeros(len(tokenizer), 1)
        text = SimpleNamespace(max_position_embeddings=context)
        self.config = SimpleNamespace(get_text_config=lambda: text)

    def get_input_embeddings(self) -> Any:
        return SimpleNamespace(weight=self._weight)

    def reorder_cache(self, kept: Any) -> None:
        self._rows = [self._rows[at] for at in kept.tolist()]

    def __call__(self, *, input_ids: Any, **_: Any) -> Any:
        import torch

        logits = torch.zeros(len(self._rows), 1, len(self._weight))
        for at, (row, read) in enumerate(zip(self._rows, input_ids[:, -1].tolist(), strict=True)):
            if read == self._asks and self._turns[row]:
                self._saying[row] = list(self._turns[row].pop(0))
            if self._saying[row]:
                logits[at, 0, self._saying[row].pop(0)] = 1e4
        return SimpleNamespace(logits=logits, past_key_values=self)


def by_place(tokenizer, specification, agents) -> Callable[[Mapping[str, Any]], Part]:
    """Return a function from a rollout's row to its part, under the schedule that its design asks for."""
    known: dict[tuple[int, int, int], Part] = {}

    def find(row: Mapping[str, Any]) -> Part:
        place = (row["step"], row["position"], row["rollout_slot"])
        if place not in known:
            seed, slot = _seed(specification, *place), place[2]
            known[place] = part(tokenizer, agents[slot], row["task"], row["regime"], seed)
        return known[place]

    return find


def _seed(specification: Any, step: int, position: int, slot: int) -> int:
    """Return the schedule seed of a rollout, as the registered protocol derives it, step by step."""
    from toolkit.seeds import row_seed, run_seed, slot_seed

    blocking = specification.arm.startswith("blocking")
    run = run_seed(specification.root, specification.seed)
    row = row_seed(run, step, position // 2 if blocking else position)
    is_clean = blocking and position % 2 == 0
    paired = specification.arm in {"paired", "blocking_paired"} and not is_clean
    return row if paired else slot_seed(row, slot)
