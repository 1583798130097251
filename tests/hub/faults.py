"""What can be wrong with a Hub, each by name; switched on for some requests, for good or for a few."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "server_error",  # 503 instead of an answer
    "missing_file",  # 404, although the tree lists it
    "truncated_body",  # half of the body, and headers that say this is all of it
    "cut_body",  # half of the body, and then the connection ends
    "wrong_bytes",  # a body of the right length with one byte changed
    "hung_up",  # the connection ends without an answer
    "forbidden",  # 403
    "another_writer",  # somebody else commits just before this request is answered
    "leads_out",  # the ETag is a path that leads out of the cache
    "endless_body",  # a body that goes on after what was asked for, for 50 megabytes
    "silent",  # no answer, and the connection stays
    "dripping",  # a byte at a time, and never all
]


@dataclass
class Fault:
    """A fault and the requests that meet it.

    Args:
        kind: what happens.
        where: pattern that is looked for in `METHOD /path`.
        times: how many requests meet it; all where it is None.
        met: how many did.
    """

    kind: Kind
    where: str
    times: int | None = None
    met: int = 0

    def meets(self, request: str) -> bool:
        """Whether a request meets the fault, which counts it."""
        if self.met == self.times or not re.search(self.where, request):
            return False
        self.met += 1
        return True
