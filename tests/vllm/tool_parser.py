"""Reads the calls of `small`, for vLLM's `--tool-parser-plugin`: the tokenizer says how they are written."""

import json
from typing import Any

from vllm.entrypoints.openai.engine.protocol import ExtractedToolCallInformation, FunctionCall, ToolCall
from vllm.tool_parsers import ToolParser, ToolParserManager

from toolkit.lab.policies.language_model.chat import Chat


@ToolParserManager.register_module("small")
class SmallToolParser(ToolParser):  # type: ignore[misc]
    def adjust_request(self, request: Any) -> Any:
        request.skip_special_tokens = False
        return request

    def extract_tool_calls(
        self,
        model_output: str,
        request: Any,  # noqa: ARG002
    ) -> ExtractedToolCallInformation:
        encode = self.model_tokenizer.encode
        tokens, before = (encode(text, add_special_tokens=False) for text in (model_output, "<assistant>"))
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
