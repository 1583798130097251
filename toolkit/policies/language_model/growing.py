"""A conversation's tokens as engines with a tokenizer continue them: they only ever grow, and have an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import UsageError

if TYPE_CHECKING:
    from typing import Any

    from toolkit.policies.language_model.chat import Chat
    from toolkit.policies.language_model.conversation import Conversation

MAX_TOKENS = 6144
"""Most tokens of a conversation beyond its opening. Source: paper app:training."""


def extend(talk: Conversation, chat: Chat, context: int) -> None:
    """Bring a conversation's tokens up to its messages.

    Args:
        talk: the conversation.
        chat: the tokenizer.
        context: most tokens that the model takes.

    Raises:
        UsageError: the opening alone is longer than the model's context.
    """
    if not talk.tokens:
        talk.tokens = chat.opening(talk.messages)
        talk.opened = len(talk.tokens)
        if talk.opened >= context:
            raise UsageError(
                "the model's context is too small for the task and its tools",
                expected=f"more than {talk.opened} tokens",
                found=f"{context} tokens",
                remedy="choose a model with a longer context",
            )
        return
    answers: list[dict[str, Any]] = []
    for message in reversed(talk.messages):
        if message["role"] != "tool":
            break
        answers.insert(0, message)
    talk.tokens += chat.after_call(answers)


def room(talk: Conversation, most: int, context: int) -> int:
    """Return how many tokens the next turn may have; none are left where it is zero or less.

    Args:
        talk: the conversation.
        most: most tokens beyond its opening.
        context: most tokens that the model takes.
    """
    return min(most - (len(talk.tokens) - talk.opened), context - len(talk.tokens))
