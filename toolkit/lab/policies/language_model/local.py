"""A model in this process, with transformers: whole episodes token by token, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import Episode, close
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.conversation import (
    MAX_TOKENS,
    Conversation,
    Play,
    opening,
    take_turn,
)
from toolkit.lab.policies.language_model.lockstep import SharedNoise, speak
from toolkit.seeds import units

BATCH = 64
"""Conversations side by side."""


@dataclass
class DeskPartner:
    """The desk's side of a conversation in tokens."""

    chat: Chat  # the model's tokenizer
    talk: Conversation  # the conversation
    desk: Desk  # the episode's desk
    max_turns: int  # most turns

    def reply(self, turn: Sequence[int], before: Sequence[int], *, cut: bool) -> list[int] | None:
        """Make the calls of a turn; return their answers as tokens, or None where nothing follows."""
        before_answers = len(self.talk.messages) + 1
        goes_on = take_turn(self.talk, self.desk, self.chat.turn(turn, before, cut=cut))
        if not goes_on or self.talk.turns >= self.max_turns:
            return None
        return self.chat.after_call(self.talk.messages[before_answers:])


@dataclass(frozen=True)
class LocalEngine:
    """Plays episodes with a causal language model of transformers."""

    model: Any  # the model, in evaluation mode; an adapter is applied as it is
    chat: Chat  # its tokenizer
    temperature: float = 1.0  # divides the logits; 0 takes the most likely token
    # Most tokens of a conversation beyond its opening: `max_completion_length` of training
    max_tokens: int = MAX_TOKENS
    # Most tokens of a conversation in all, where that is less than the model takes
    context: int | None = None
    conversations: int = BATCH  # most of them side by side

    shares_samples: ClassVar[bool] = True

    def play(self, plays: Sequence[Play], *, max_turns: int, traced: bool = False) -> list[Episode]:
        """Play episodes to their ends."""
        episodes: list[Episode] = []
        for first in range(0, len(plays), self.conversations):
            episodes += self._play(plays[first : first + self.conversations], max_turns, traced=traced)
        return episodes

    def _play(self, plays: Sequence[Play], max_turns: int, *, traced: bool) -> list[Episode]:
        desks = [Desk(play.task, play.regime, play.schedule_seed, traced=traced) for play in plays]
        partners = [
            DeskPartner(self.chat, Conversation(opening(play.task.prompt), play.seed), desk, max_turns)
            for play, desk in zip(plays, desks, strict=True)
        ]
        speak(
            self.model,
            [self.chat.opening(partner.talk.messages) for partner in partners],
            partners,
            [SharedNoise(play.seed) if play.shared else units(play.seed) for play in plays],
            end=self.chat.tokenizer.eos_token_id,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            context=self.context,
        )
        return [close(desk) for desk in desks]
