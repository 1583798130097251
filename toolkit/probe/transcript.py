"""A transcript: the tokens of one rollout, and which of them the policy itself chose."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress, pairwise

from toolkit.errors import UsageError


@dataclass(frozen=True)
class Transcript:
    """The tokens of one rollout, from the first of its prompt to its last.

    Args:
        tokens: token numbers as the model's tokenizer gives them, each 0 or more.
        chosen: for each token, whether the policy sampled it: False for those of prompts and tool results.

    Raises:
        UsageError: the two differ in length, a token is negative, the policy chose no token, or it chose the
            first one, which has no prefix.

    Source:
        Paper app:probe, the mask m_it: "retaining policy tokens and masking tool results".
    """

    tokens: tuple[int, ...]
    chosen: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.chosen):
            raise UsageError(
                "a transcript says of each token whether the policy chose it",
                expected=f"{len(self.tokens)} marks for {len(self.tokens)} tokens",
                found=f"{len(self.chosen)} marks",
                remedy="give tokens and chosen of one length",
            )
        if any(token < 0 for token in self.tokens):
            raise UsageError(
                "a token number is negative",
                expected="0 or more",
                found=min(self.tokens),
                where=f"token {self.tokens.index(min(self.tokens))}",
                remedy="give token numbers as the tokenizer does, without padding or ignored labels",
            )
        if not any(self.chosen):
            raise UsageError(
                "the policy chose no token of this transcript, so that it has no score",
                expected="at least one chosen token",
                found=f"{len(self.tokens)} tokens, none chosen",
                remedy="leave out rollouts in which nothing was sampled, or correct the marks",
            )
        if self.chosen[0]:
            raise UsageError(
                "the first token of a transcript has no prefix to be chosen after",
                expected="False",
                found="True",
                where="chosen, token 0",
                remedy="put the prompt before the tokens that the policy sampled",
            )

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Return the position that each chosen token was predicted at, the one before it, and the token."""
        places = ((at, after) for at, (_, after) in enumerate(pairwise(self.tokens)))
        return tuple(compress(places, self.chosen[1:]))
