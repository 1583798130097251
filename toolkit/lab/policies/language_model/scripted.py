"""The scripted agents as an engine: what they would call next, told from a conversation alone.

They need no model, so that whatever holds conversations can be tried with them: an episode that is held as a
conversation must come out as the agent's own does.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.lab.episodes.agents import AGENTS
from toolkit.lab.episodes.desk import Agent
from toolkit.lab.policies.language_model.conversation import Conversation, Turn


class _NextCall(Exception):  # noqa: N818 - a signal to whoever plays the agent, not an error
    """The agent wants an answer that the conversation does not have yet."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        super().__init__(tool)
        self.call = (tool, arguments)


@dataclass(frozen=True)
class ScriptedEngine:
    """Says what a scripted agent says."""

    agent: str  # its name: `reference` or `careless`

    shares_samples: ClassVar[bool] = True

    def turns(self, conversations: Sequence[Conversation]) -> list[Turn]:
        """Return the next turn of each conversation."""
        return [next_turn(AGENTS[self.agent], conversation.messages) for conversation in conversations]


def next_turn(agent: Agent, messages: Sequence[Mapping[str, Any]]) -> Turn:
    """Return what an agent says next: one call, or nothing where it is done.

    The agent is played from its start on the answers so far: it keeps nothing between two turns.
    """
    (prompt,) = (str(message["content"]) for message in messages if message["role"] == "user")
    answers = (json.loads(message["content"]) for message in messages if message["role"] == "tool")

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] | None = next(answers, None)
        if answer is None:
            raise _NextCall(tool, arguments)
        return answer

    try:
        agent(prompt, call)
    except _NextCall as wanted:
        return Turn((wanted.call,), "")
    return Turn((), "")
