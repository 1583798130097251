"""Reads the calls of `small`, for `--tool-parser-plugin` of vLLM's server: the tokenizer says how they are written."""

import json
from typing import Any

from vllm.entrypoints.openai.engine.protocol import ExtractedToolCallInformation, FunctionCall, ToolCall
from vllm.tool_parsers import ToolParser, ToolParserManager

from toolkit.policies.language_model.chat import Chat


@ToolParserManager.register_module("small")
class SmallToolParser(ToolParser):  # type: ignore[misc]
    def adjust_request(self, request: Any) -> Any:
        request.skip_special_tokens = False
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        tokens, before = (
            self.model_tokenizer.encode(text, add_special_tokens=False) for text in (model_output, "<assistant>")
        )
        message = Chat(self.model_tokenizer).parse(tokens, before)
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        return ExtractedToolCallInformation(
            tools_called=bool(calls),
            tool_calls=[
                ToolCall(function=FunctionCall(name=call["name"], arguments=json.dumps(call["arguments"])))
                for call in calls
            ],
            content=message.get("content") or None,
        )
