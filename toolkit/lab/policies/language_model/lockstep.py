"""Whole conversations with a model in this process, token by token side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from numpy.typing import NDArray

from toolkit.errors import IncompleteError

if TYPE_CHECKING:
    import numpy as np
from typing import ClassVar

from toolkit.lab.episodes.episode import Episode
from toolkit.lab.policies.language_model.chat import Chat
from toolkit.lab.policies.language_model.conversation import (
    MAX_TOKENS,
    AnyDesk,
    Conversation,
    Play,
    closed,
    context_too_small,
    desk_of,
    opening_of,
    take_turn,
)
from toolkit.seeds import units


@dataclass(frozen=True)
class SharedNoise:
    """The noise of a conversation whose samples are shared."""

    seed: int  # of the shared sample, as `toolkit.seeds.shared_seed` gives it


class Place(NamedTuple):
    """Where a token is sampled."""

    noise: SharedNoise  # of the conversation
    turn: int  # turns of the conversation before
    position: int  # tokens of this turn before


AT_ONCE = 8192
"""Tokens whose noise is made at once, a multiple of four: it stays in a processor's cache."""
_DROPPED_BITS = 12
_UNIT = 2.0**-52
_ROOT_HALF = 0x3FE6A09E667F3BCD
"""The bits of √½: numbers are brought to between it and √2."""
_MANTISSA_BITS = 52
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts; the first has so few digits that its product with an exponent is exact."""
_SERIES = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)
"""(log(1 + f) - 2s) / s as a polynomial in s², s = f / (2 + f), from its highest power down."""


def sampled(weights: NDArray[np.float64], places: Sequence[Place]) -> list[int]:
    """Return the token that is sampled at each place."""
    return [_first_to_ring(row, place) for row, place in zip(weights, places, strict=True)]


def _first_to_ring(weights: NDArray[np.float64], place: Place) -> int:
    """Return the token with the largest p / E: of clocks that ring at rate p, the first to ring."""
    best, token, start = -1.0, 0, 0
    for part in exponentials(place, len(weights)):
        rates = weights[start : start + len(part)] / part
        at = int(rates.argmax())
        if rates[at] > best:
            best, token = rates[at], start + at
        start += len(part)
    return token


def exponentials(place: Place, tokens: int) -> Iterator[NDArray[np.float64]]:
    """Yield E = -log u of every token at a place, in order, in parts that may be overwritten by the next."""
    import numpy as np

    noise, turn, position = place
    counter = np.array([0, position, turn, 0], dtype=np.uint64)
    generator = np.random.Philox(counter=counter, key=np.array([noise.seed, 0], dtype=np.uint64))
    numbers, scratch = np.empty(AT_ONCE), np.empty((3, AT_ONCE))
    for start in range(0, tokens, AT_ONCE):
        size = min(AT_ONCE, tokens - start)
        part = numbers[:size]
        # As signed numbers: they convert faster, and none is so large.
        part[:] = (generator.random_raw(size) >> _DROPPED_BITS).view(np.int64)
        part += 0.5
        part *= _UNIT
        _minus_log(part, scratch[:, :size])
        yield part


def _minus_log(numbers: NDArray[np.float64], scratch: NDArray[np.float64]) -> None:
    """Turn numbers x in (0, 1) into -log x, within a unit in the last place, the same on every machine.

    x is 2^k (1 + f). With s = f / (2 + f), log(1 + f) is f - f²/2 + s (f²/2 + series in s²).
    """
    import numpy as np

    s, square, series = scratch
    bits = numbers.view(np.int64)
    whole = (bits - _ROOT_HALF) >> _MANTISSA_BITS
    bits -= whole << _MANTISSA_BITS
    k, f = whole.astype(np.float64), numbers
    f -= 1.0
    np.add(f, 2.0, out=s)
    np.divide(f, s, out=s)
    np.multiply(s, s, out=square)
    series[:] = 0.0
    for coefficient in _SERIES:
        series += coefficient
        series *= square
    half = np.multiply(f, 0.5, out=square)
    half *= f
    series += half
    series *= s
    series += np.multiply(k, _LN2_LOW, out=s)
    half -= series
    half -= f
    k *= _LN2_HIGH
    np.subtract(half, k, out=numbers)


Draws = Iterator[float] | SharedNoise
"""What decides a conversation's samples: an endless stream in [0, 1), or noise that is shared."""


class Partner(Protocol):
    """The other side of a conversation."""

    def reply(self, turn: Sequence[int], before: Sequence[int], *, cut: bool) -> Sequence[int] | None:
        """The tokens that follow a turn, up to where the model's next turn starts; None for the end."""


@dataclass
class Continuation:
    """A conversation's tokens beyond its opening."""

    opening: tuple[int, ...]  # tokens that it started with
    tokens: list[int] = field(default_factory=list)  # everything after that
    chosen: list[bool] = field(default_factory=list)  # for each of these, whether the model sampled it


class _Row:
    """A conversation in the batch, which may have so many tokens beyond its opening."""

    def __init__(self, spoken: Continuation, partner: Partner, draws: Draws, most: int, end: int) -> None:
        self.spoken = spoken
        self.draws = draws
        self.is_over = most <= 0
        self._partner = partner
        self._most = most
        self._end = end
        self._forced: deque[int] = deque()
        self.turn: list[int] = []
        self.turns = 0

    @property
    def samples(self) -> bool:
        return not self._forced

    def read(self) -> int:
        token = self._forced.popleft()
        self._add(token, chosen=False)
        return token

    def say(self, token: int) -> int:
        """Take a token that was sampled, and what follows it where it ends a turn."""
        self.turn.append(token)
        self._add(token, chosen=True)
        room = self._most - len(self.spoken.tokens)
        if token == self._end or room <= 0:
            before = (*self.spoken.opening, *self.spoken.tokens[: -len(self.turn)])
            reply = self._partner.reply(self.turn, before, cut=token != self._end)
            self.turn = []
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
) -> list[Continuation]:
    """Hold conversations to their ends."""
    import torch

    limit = int(model.config.get_text_config().max_position_embeddings)
    context = min(limit, context or limit)
    longest = max(map(len, openings))
    if longest >= context:
        raise context_too_small(longest, context)
    spoken = [Continuation(tuple(opening)) for opening in openings]
    rows = [
        _Row(conversation, partner, stream, min(max_tokens, context - len(conversation.opening)), end)
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
        out = model(
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
        if 2 * len(left) <= len(rows):
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
                places[at] = Place(row.draws, row.turns, len(row.turn))
            else:
                numbers[at] = next(row.draws)
    tokens = dict.fromkeys(range(len(rows)), 0)
    if numbers:
        tokens |= zip(numbers, _inverted(chances[[*numbers]], [*numbers.values()]), strict=True)
    if places:
        tokens |= zip(places, sampled(chances[[*places]].cpu().numpy(), [*places.values()]), strict=True)
    return [*tokens.values()]


def _inverted(chances: Any, numbers: Sequence[float]) -> list[int]:
    import torch

    below = chances.cumsum(-1)
    wanted = torch.tensor(numbers, dtype=torch.float64, device=below.device)[:, None] * below[:, -1:]
    picked = torch.searchsorted(below, wanted, right=True)[:, 0].clamp(max=below.shape[-1] - 1)
    return [int(token) for token in picked]


BATCH = 64
"""Conversations side by side."""


@dataclass
class DeskPartner:
    """The desk's side of a conversation in tokens."""

    chat: Chat  # the model's tokenizer
    talk: Conversation  # the conversation
    desk: AnyDesk  # the episode's desk
    max_turns: int  # most turns
    over: Callable[[], object] = lambda: None  # called when nothing follows any more

    def reply(self, turn: Sequence[int], before: Sequence[int], *, cut: bool) -> list[int] | None:
        """Make the calls of a turn; return their answers as tokens, or None where nothing follows."""
        before_answers = len(self.talk.messages) + 1
        goes_on = take_turn(self.talk, self.desk, self.chat.turn(turn, before, cut=cut))
        if not goes_on or self.talk.turns >= self.max_turns:
            self.over()
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
        desks = [desk_of(play.task, play.regime, play.schedule_seed, traced=traced) for play in plays]
        partners = [
            DeskPartner(self.chat, Conversation(opening_of(play.task), play.seed), desk, max_turns)
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
        return [closed(desk) for desk in desks]
