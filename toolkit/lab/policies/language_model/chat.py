"""Chats as tokens: what was sampled is kept token for token, and never rendered again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import UsageError
from toolkit.lab.backoffice.schemas import Schema, openai_tools
from toolkit.lab.policies.language_model.conversation import Turn, tool_call

Message = dict[str, Any]

_PROBE = ("tool_5f1d", "argument_c27a", "value_90b4", "answer_e8d3")
"""What a template has to write out, if it can write tools."""


@dataclass(frozen=True)
class Chat:
    """A tokenizer that renders conversations with tools, and reads the calls in answers."""

    tokenizer: Any  # of a model with a chat template and a response template
    # Further variables of the chat template, such as `enable_thinking`
    options: tuple[tuple[str, Any], ...] = ()
    tools: tuple[Schema, ...] = ()  # that the model is shown, where they are not the back office's

    def opening(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation's first messages, up to where the model's turn starts."""
        return self._render(messages, tools=list(self.tools) or openai_tools(), add_generation_prompt=True)

    def after_call(self, answers: Sequence[Message]) -> list[int]:
        """Return the tokens between a turn that called tools and the next turn."""
        before: list[Message] = [
            {"role": "user", "content": "-"},
            {"role": "assistant", "content": "", "tool_calls": [tool_call("0", answers[0]["name"], {})]},
        ]
        start = self._render(before, add_generation_prompt=False)
        ends = [at for at, token in enumerate(start) if token == self.tokenizer.eos_token_id]
        # A turn is sampled up to its end-of-turn token; what the template writes after that comes with what
        # follows.
        start = start[: ends[-1] + 1] if ends else start
        whole = self._render([*before, *answers], add_generation_prompt=True)
        if whole[: len(start)] != start:
            raise _unusable("writes a turn in another way once an answer follows it")
        return whole[len(start) :]

    def turn(self, tokens: Sequence[int], before: Sequence[int], *, cut: bool) -> Turn:
        """Return what a turn's tokens say."""
        message = self.parse(tokens, before)
        calls = tuple(
            (call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        )
        return Turn(calls, message.get("content") or "", tuple(tokens), cut)

    def parse(self, tokens: Sequence[int], before: Sequence[int]) -> Message:
        """Return the message that tokens say; what cannot be read as calls is text."""
        tokenizer = self.tokenizer
        try:
            message = tokenizer.parse_response(list(tokens), prefix=list(before)) or {}
        except (ValueError, TypeError):
            message = {}
        calls = message.get("tool_calls")
        if not isinstance(message, dict) or not _well_formed(calls):
            return {"content": tokenizer.decode(list(tokens), skip_special_tokens=True)}
        for call in calls or ():
            if call["function"].get("arguments") is None:
                call["function"]["arguments"] = {}
        return message

    def check(self) -> None:
        """Refuse a tokenizer whose template cannot write tools, or whose answers cannot be read."""
        from jinja2 import TemplateError

        if not getattr(self.tokenizer, "chat_template", None):
            raise _unusable("is missing")
        name, argument, value, answer = _PROBE
        messages: list[Message] = [
            {"role": "user", "content": "-"},
            {"role": "assistant", "content": "", "tool_calls": [tool_call("0", name, {argument: value})]},
            {"role": "tool", "tool_call_id": "0", "name": name, "content": answer},
        ]
        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, **dict(self.options))
        except (TemplateError, TypeError) as error:
            raise _unusable(f"refuses a conversation with tools: {error}") from None
        if not all(part in text for part in _PROBE):
            raise _unusable("leaves out tool calls or their answers")
        if getattr(self.tokenizer, "response_template", None) is None:
            raise UsageError(
                "the tool calls in this model's answers cannot be read",
                expected="a tokenizer with a response_template",
                found="none, and a chat template that is not a known one",
                remedy="set tokenizer.response_template (Transformers: chat response parsing) and save the "
                "tokenizer with it, or choose a model of a known family",
            )
        self.after_call([{"role": "tool", "tool_call_id": "0", "name": name, "content": answer}])

    def _render(self, messages: Sequence[Message], **how: Any) -> list[int]:
        tokens = self.tokenizer.apply_chat_template(
            list(messages), tokenize=True, return_dict=False, **how, **dict(self.options)
        )
        return [int(token) for token in tokens]


def _well_formed(calls: Any) -> bool:
    return calls is None or all(
        isinstance(call, dict)
        and isinstance(call.get("function"), dict)
        and isinstance(call["function"].get("name"), str)
        for call in calls
    )


def _unusable(why: str) -> UsageError:
    problem = "the model's chat template cannot be used for tool calling"
    expected = "a template that writes tool calls and their answers, the same way every time"
    remedy = "choose a model that was trained to call tools"
    return UsageError(problem, expected=expected, found=f"one that {why}", remedy=remedy)
