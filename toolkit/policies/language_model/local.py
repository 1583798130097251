"""A model in this process: transformers, one padded batch of conversations at a time.

Every conversation samples from its own stream of seeds: which token comes next is where its next uniform
number falls in the model's distribution. What a conversation gets does not depend on which others share its
batch, but for the last digits of the model's own sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import IncompleteError
from toolkit.policies.language_model.growing import MAX_TOKENS, extend, room
from toolkit.seeds import turn_seed, units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.policies.language_model.chat import Chat
    from toolkit.policies.language_model.conversation import Conversation, Turn


class LocalEngine:
    """Takes turns with a causal language model of transformers.

    Args:
        model: the model, in evaluation mode; an adapter is applied as it is.
        chat: its tokenizer.
        temperature: divides the logits; 0 takes the most likely token.
        max_tokens: most tokens of a conversation beyond its opening: `max_completion_length` of training.
        batch: conversations in a pass.
    """

    def __init__(
        self,
        model: Any,
        chat: Chat,
        *,
        temperature: float = 1.0,
        max_tokens: int = MAX_TOKENS,
        batch: int = 64,
    ) -> None:
        self._model = model
        self._chat = chat
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._batch = batch
        self._context = int(model.config.get_text_config().max_position_embeddings)
        self._openings: dict[int, int] = {}

    def turns(self, conversations: Sequence[Conversation]) -> list[Turn]:
        """Return one turn of each conversation.

        Raises:
            UsageError: an opening alone is longer than the model's context.
            IncompleteError: there is not enough memory.
        """
        for talk in conversations:
            extend(talk, self._chat, self._context)
        found: list[Turn] = []
        for first in range(0, len(conversations), self._batch):
            found += self._turns(conversations[first : first + self._batch])
        return found

    def _turns(self, talks: Sequence[Conversation]) -> list[Turn]:
        import torch

        rooms = [room(talk, self._max_tokens, self._context) for talk in talks]
        open_ = [(talk, left) for talk, left in zip(talks, rooms, strict=True) if left > 0]
        try:
            with torch.inference_mode():
                sampled = iter(self._sample([t for t, _ in open_], [r for _, r in open_]) if open_ else [])
        except torch.OutOfMemoryError:
            raise IncompleteError(
                "there is not enough memory for a batch of conversations",
                found=f"{len(open_)} conversations of up to {max(len(t.tokens) for t, _ in open_)} tokens",
                remedy="use a smaller --batch; what was recorded stays",
            ) from None
        turns = []
        for talk, left in zip(talks, rooms, strict=True):
            if left <= 0:
                turns.append(self._chat.turn((), talk.tokens, cut=True))
                continue
            tokens, cut = next(sampled)
            turns.append(self._chat.turn(tokens, talk.tokens, cut=cut))
            talk.tokens += tokens
        return turns

    def _sample(self, talks: Sequence[Conversation], rooms: Sequence[int]) -> list[tuple[list[int], bool]]:
        """Sample a turn of each conversation: up to its end-of-turn token, or to its room."""
        import torch

        device = self._model.get_input_embeddings().weight.device
        end = self._chat.tokenizer.eos_token_id
        length = max(len(talk.tokens) for talk in talks)
        # On the left, where a mask leaves it out: every row's next token stands in the last column.
        pads = [length - len(talk.tokens) for talk in talks]
        tokens = torch.tensor(
            [[end] * pad + t.tokens for pad, t in zip(pads, talks, strict=True)], device=device
        )
        mask = torch.tensor([[0] * pad + [1] * (length - pad) for pad in pads], device=device)
        streams = [_uniforms(talk) for talk in talks]
        found: list[list[int]] = [[] for _ in talks]
        going, cache = set(range(len(talks))), None
        while True:
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
            out = self._model(
                input_ids=tokens,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = out.past_key_values
            picked = self._pick(out.logits[:, -1], streams)
            for row in list(going):
                found[row].append(picked[row])
                if picked[row] == end or len(found[row]) == rooms[row]:
                    going.discard(row)
            if not going:
                return [(row, row[-1] != end) for row in found]
            tokens = torch.tensor(picked, device=device)[:, None]
            mask = torch.cat([mask, mask.new_ones((len(talks), 1))], dim=-1)

    def _pick(self, logits: Any, streams: Sequence[Iterator[float]]) -> list[int]:
        import torch

        if self._temperature == 0:
            return [int(token) for token in logits.argmax(-1)]
        weights = torch.softmax(logits.double() / self._temperature, dim=-1).cumsum(-1)
        numbers = torch.tensor([next(stream) for stream in streams], dtype=torch.float64)
        wanted = numbers.to(weights.device)[:, None] * weights[:, -1:]
        picked = torch.searchsorted(weights, wanted, right=True)[:, 0]
        return [int(token) for token in picked.clamp(max=weights.shape[-1] - 1)]


def _uniforms(talk: Conversation) -> Iterator[float]:
    """Return the numbers that decide a turn: each turn has a stream of its own."""
    return units(turn_seed(talk.seed, talk.turns))
