"""Whole conversations with a model in this process, token by token side by side.

Every pass of the model takes one token of every conversation: the next of an answer that a tool gave, or else
one that is sampled. Nothing is read twice, so that a conversation costs what its tokens cost, however many
turns it has.

1. The openings are read, padded on the left, where a mask leaves the padding out.
2. A conversation whose turn ended is asked what follows: tokens to read, or nothing, when it is over.
3. Conversations that are over leave the batch when they are half of it.

A conversation samples from a stream of its own: which token comes next is where its next uniform number
falls in the model's distribution. Or its samples are shared with other models: then every token has its
noise (`gumbel`). Either way, what it gets does not depend on which others share its batch, but for the last
digits of the model's own sums.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.policies.language_model.gumbel import Place, SharedNoise, sampled

Draws = Iterator[float] | SharedNoise
"""What decides a conversation's samples: an endless stream in [0, 1), or noise that is shared."""


class Partner(Protocol):
    """The other side of a conversation."""

    def reply(self, turn: Sequence[int], before: Sequence[int], *, cut: bool) -> Sequence[int] | None:
        """The tokens that follow a turn, up to where the model's next turn starts; None for the end."""


@dataclass
class Spoken:
    """A conversation's tokens beyond its opening."""

    opening: tuple[int, ...]  # tokens that it started with
    tokens: list[int] = field(default_factory=list)  # everything after that
    chosen: list[bool] = field(default_factory=list)  # for each of these, whether the model sampled it


@dataclass(frozen=True)
class Limits:
    """What a conversation may not exceed."""

    tokens: int  # beyond its opening
    context: int  # in all

    def room(self, spoken: Spoken) -> int:
        """Return how many more tokens a conversation may have."""
        used = len(spoken.tokens)
        return min(self.tokens - used, self.context - len(spoken.opening) - used)


class _Row:
    """A conversation in the batch."""

    def __init__(self, spoken: Spoken, partner: Partner, draws: Draws, limits: Limits, end: int) -> None:
        self.spoken = spoken
        self.draws = draws
        self.is_over = limits.room(spoken) <= 0
        self._partner = partner
        self._limits = limits
        self._end = end
        self._forced: deque[int] = deque()
        self._turn: list[int] = []
        self.turns = 0

    @property
    def samples(self) -> bool:
        """Whether its next token is sampled."""
        return not self._forced

    @property
    def position(self) -> int:
        """How many tokens this turn has."""
        return len(self._turn)

    def read(self) -> int:
        """Return the next token of an answer."""
        token = self._forced.popleft()
        self._add(token, chosen=False)
        return token

    def say(self, token: int) -> int:
        """Take a token that was sampled, and what follows it where it ends a turn (2)."""
        self._turn.append(token)
        self._add(token, chosen=True)
        room = self._limits.room(self.spoken)
        if token == self._end or room <= 0:
            before = (*self.spoken.opening, *self.spoken.tokens[: -len(self._turn)])
            reply = self._partner.reply(self._turn, before, cut=token != self._end)
            self._turn = []
            self.turns += 1
            # An answer that leaves no room is not read; the conversation stays as it is.
            self.is_over = reply is None or len(reply) >= room
            self._forced.extend(() if self.is_over or reply is None else reply)
        return token

    def _add(self, token: int, *, chosen: bool) -> None:
        self.spoken.tokens.append(token)
        self.spoken.chosen.append(chosen)


def speak(
    model: Any,
    openings: Sequence[Sequence[int]],
    partners: Sequence[Partner],
    draws: Sequence[Draws],
    *,
    end: int,
    max_tokens: int,
    temperature: float = 1.0,
    context: int | None = None,
) -> list[Spoken]:
    """Hold conversations to their ends."""
    import torch

    limit = int(model.config.get_text_config().max_position_embeddings)
    context = min(limit, context or limit)
    longest = max(map(len, openings))
    if longest >= context:
        raise UsageError(
            "the model's context is too small for the task and its tools",
            expected=f"more than {longest} tokens",
            found=f"{context} tokens",
            remedy="choose a model with a longer context",
        )
    limits = Limits(max_tokens, context)
    spoken = [Spoken(tuple(opening)) for opening in openings]
    rows = [
        _Row(conversation, partner, stream, limits, end)
        for conversation, partner, stream in zip(spoken, partners, draws, strict=True)
    ]
    try:
        with torch.inference_mode():
            _hold(model, rows, end, temperature)
    except torch.OutOfMemoryError:
        raise IncompleteError(
            "there is not enough memory for the conversations",
            found=f"{len(rows)} side by side, openings of up to {longest} tokens",
            remedy="hold fewer at once: --engine-option conversations=N, or engine.conversations of a "
            "recipe; what was recorded stays",
        ) from None
    return spoken


def _hold(model: Any, rows: list[_Row], end: int, temperature: float) -> None:
    import torch

    device = model.get_input_embeddings().weight.device
    length = max(len(row.spoken.opening) for row in rows)
    pads = [length - len(row.spoken.opening) for row in rows]
    tokens = torch.tensor(
        [[end] * pad + list(row.spoken.opening) for pad, row in zip(pads, rows, strict=True)], device=device
    )
    mask = torch.tensor([[0] * pad + [1] * (length - pad) for pad in pads], device=device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    cache = None
    while True:
        out = model(  # 1
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache = out.past_key_values
        picked = _picked(out.logits[:, -1], rows, temperature)
        following = [
            end if row.is_over else row.say(token) if row.samples else row.read()
            for row, token in zip(rows, picked, strict=True)
        ]
        left = [at for at, row in enumerate(rows) if not row.is_over]
        if not left:
            return
        tokens = torch.tensor(following, device=device)[:, None]
        positions = positions[:, -1:] + 1
        mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=-1)
        if 2 * len(left) <= len(rows):  # 3
            kept = torch.tensor(left, device=device)
            rows = [rows[at] for at in left]
            tokens, positions, mask = tokens[kept], positions[kept], mask[kept]
            cache.reorder_cache(kept)


def _picked(logits: Any, rows: Sequence[_Row], temperature: float) -> list[int]:
    """Return the token that each row would sample next; numbers are drawn by those that do."""
    import torch

    if temperature == 0:
        return [int(token) for token in logits.argmax(-1)]
    chances = torch.softmax(logits.double() / temperature, dim=-1)
    numbers: dict[int, float] = {}
    places: dict[int, Place] = {}
    for at, row in enumerate(rows):
        if row.samples and not row.is_over:
            if isinstance(row.draws, SharedNoise):
                places[at] = Place(row.draws, row.turns, row.position)
            else:
                numbers[at] = next(row.draws)
    tokens = dict.fromkeys(range(len(rows)), 0)
    if numbers:
        tokens |= zip(numbers, _inverted(chances[[*numbers]], [*numbers.values()]), strict=True)
    if places:
        tokens |= zip(places, sampled(chances[[*places]].cpu().numpy(), [*places.values()]), strict=True)
    return [*tokens.values()]


def _inverted(chances: Any, numbers: Sequence[float]) -> list[int]:
    """Return the token at which each distribution function exceeds its number."""
    import torch

    below = chances.cumsum(-1)
    wanted = torch.tensor(numbers, dtype=torch.float64, device=below.device)[:, None] * below[:, -1:]
    picked = torch.searchsorted(below, wanted, right=True)[:, 0].clamp(max=below.shape[-1] - 1)
    return [int(token) for token in picked]
