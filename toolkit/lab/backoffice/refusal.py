"""A call that the back office does not carry out: data for the agent, never an error of the program."""

from typing import Any

from toolkit.noise.layer import error


class Refusal(Exception):  # noqa: N818 - it is an answer, not an error
    """A tool's refusal: a code of `CODES`, a sentence for the agent, and further fields of the answer."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def answer(self) -> dict[str, Any]:
        """Return it as `{"error": {"code", "message", …}}`."""
        return error(self.code, self.message, **self.details)


CODES = {
    "unknown_tool": "There is no such tool.",
    "invalid_arguments": "An argument is missing, unknown, of a wrong type or out of its range.",
    "not_found": "There is no such customer, order or product.",
    "conflict": "The record's state does not allow this.",
    "temporarily_unavailable": "The call failed; trying again may work.",
    "rate_limited": "Too many calls: every call fails until `retry_after` seconds were waited.",
    "outage": "This request fails for the rest of the episode.",
    "timeout": "No answer came in time: whether the write was applied is unknown.",
    "budget_exceeded": "The call budget is spent; the episode has ended.",
    "episode_over": "The episode has ended; nothing was done.",
}
