"""Trace codes: which faults called for a recovery, and which recoveries were made.

Codes go by event key: the next attempt of the same tool on the same record is the recovery, whatever it was
meant for. A wait is one once the limit is over; an attempt that a limit or an outage blocks is none.

Source:
    The registration's trace codes: retry after transient, wait after rate limit, re-read after stale read,
    paginate after truncation.
"""

from collections.abc import Mapping

from toolkit.noise.tools import Fault

CODES: Mapping[Fault, str] = {
    "transient": "retry_after_transient",
    "rate_limit": "wait_after_rate_limit",
    "stale_read": "reread_after_stale",
    "truncation": "paginate_after_truncation",
}


class Recovery:
    """Counts of one episode, kept call by call.

    Attributes:
        called_for: code → faults that called for it.
        made: code → how many of them were followed by it.
        awaited: (tool, resource) of a call that would be a recovery → its code, where a cut list goes on.
    """

    __slots__ = ("awaited", "called_for", "made")

    def __init__(self) -> None:
        self.called_for: dict[str, int] = {}
        self.made: dict[str, int] = {}
        self.awaited: dict[tuple[str, str], tuple[str, int]] = {}

    def fault(self, code: str | None, tool: str, resource: str, next_offset: int = 0) -> None:
        """Note a fault that landed; `next_offset` is where a cut list goes on."""
        if code is None:
            return
        self.called_for[code] = self.called_for.get(code, 0) + 1
        key = ("wait", "") if code == "wait_after_rate_limit" else (tool, resource)
        self.awaited[key] = (code, next_offset)

    def call(self, tool: str, resource: str, offset: int = 0) -> None:
        """Note a call: it may be the recovery that an earlier fault called for."""
        code, next_offset = self.awaited.get((tool, resource), ("", 0))
        if code and (code != "paginate_after_truncation" or offset == next_offset):
            del self.awaited[tool, resource]
            self.made[code] = self.made.get(code, 0) + 1
