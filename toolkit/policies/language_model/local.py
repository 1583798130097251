"""A model in this process, with transformers: whole episodes token by token, side by side."""

from collections.abc import Sequence
from typing import Any

from toolkit.episodes.desk import Desk
from toolkit.episodes.episode import Episode, close
from toolkit.policies.language_model.chat import Chat
from toolkit.policies.language_model.conversation import MAX_TOKENS, Conversation, Play, opening, take_turn
from toolkit.policies.language_model.lockstep import speak
from toolkit.seeds import units

BATCH = 64


class DeskPartner:
    """The desk's side of a conversation in tokens.

    Args:
        chat: the model's tokenizer.
        talk: the conversation.
        desk: the episode's desk.
        max_turns: most turns.
    """

    def __init__(self, chat: Chat, talk: Conversation, desk: Desk, max_turns: int) -> None:
        self._chat = chat
        self.talk = talk
        self._desk = desk
        self._max_turns = max_turns

    def reply(self, turn: Sequence[int], before: Sequence[int], *, cut: bool) -> list[int] | None:
        """Make the calls of a turn; return their answers as tokens, or None where nothing follows."""
        before_answers = len(self.talk.messages) + 1
        goes_on = take_turn(self.talk, self._desk, self._chat.turn(turn, before, cut=cut))
        if not goes_on or self.talk.turns >= self._max_turns:
            return None
        return self._chat.after_call(self.talk.messages[before_answers:])


class LocalEngine:
    """Plays episodes with a causal language model of transformers.

    Args:
        model: the model, in evaluation mode; an adapter is applied as it is.
        chat: its tokenizer.
        temperature: divides the logits; 0 takes the most likely token.
        max_tokens: most tokens of a conversation beyond its opening: `max_completion_length` of training.
        context: most tokens of a conversation in all, where that is less than the model takes.
        batch: conversations side by side.
    """

    def __init__(
        self,
        model: Any,
        chat: Chat,
        *,
        temperature: float = 1.0,
        max_tokens: int = MAX_TOKENS,
        context: int | None = None,
        batch: int = BATCH,
    ) -> None:
        self._model = model
        self._chat = chat
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._context = context
        self._batch = batch

    def play(self, plays: Sequence[Play], *, max_turns: int, traced: bool = False) -> list[Episode]:
        """Play episodes to their ends.

        Raises:
            UsageError: an opening alone is longer than the model's context.
            IncompleteError: there is not enough memory.
        """
        episodes: list[Episode] = []
        for first in range(0, len(plays), self._batch):
            episodes += self._play(plays[first : first + self._batch], max_turns, traced=traced)
        return episodes

    def _play(self, plays: Sequence[Play], max_turns: int, *, traced: bool) -> list[Episode]:
        desks = [Desk(play.task, play.regime, play.schedule_seed, traced=traced) for play in plays]
        partners = [
            DeskPartner(self._chat, Conversation(opening(play.task.prompt), play.seed), desk, max_turns)
            for play, desk in zip(plays, desks, strict=True)
        ]
        speak(
            self._model,
            [self._chat.opening(partner.talk.messages) for partner in partners],
            partners,
            [units(play.seed) for play in plays],
            end=self._chat.tokenizer.eos_token_id,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            context=self._context,
        )
        return [close(desk) for desk in desks]
