"""Questions to an OpenAI-compatible server, and their answers as JSON.

What can get better by asking again is asked again, a few times and with growing pauses: a server that is busy
(429), that failed (5xx), or that could not be reached. Nothing else is: a refusal stays one.
"""

import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

from toolkit.deadline import within
from toolkit.errors import EXCERPT, DamagedError, IncompleteError, UsageError
from toolkit.lab.policies.language_model.refusals import is_final, refusal, words

ATTEMPTS = 5
PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
TIMEOUT_S = 600.0
"""A whole answer: a long turn of a large model on a busy server takes minutes."""
LARGEST_ANSWER = 16 * 2**20
"""Bytes: a turn has some thousand tokens, and is less than a megabyte as JSON."""
LARGEST_REFUSAL = 2**16
"""Bytes of which an error quotes the first."""


@dataclass(frozen=True)
class Server:
    """A server, and how it is asked."""

    url: str  # its address, down to the version: `http://localhost:8000/v1`
    # Environment variable that holds the API key; None for a server that wants none. The key itself is in
    # no value, no file and no message of this package.
    key_variable: str | None = None
    attempts: int = ATTEMPTS  # most requests for one answer
    timeout_s: float = TIMEOUT_S  # the time for one whole answer

    def ask(
        self, path: str, document: Mapping[str, Any] | None = None, *, attempts: int | None = None
    ) -> Any:
        """Return the JSON that the server answers with."""
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(  # noqa: S310 - `server_url` lets http and https through alone
            f"{self.url}/{path}", body, self._headers(), method="GET" if body is None else "POST"
        )
        most = attempts or self.attempts
        for attempt in range(1, most + 1):
            try:
                return _read_json(self._exchange(request), self.url)
            except _Passing as passing:
                if attempt == most:
                    times = "once" if attempt == 1 else f"{attempt} times"
                    raise IncompleteError(
                        "the server does not answer",
                        found=f"{passing.reason} (asked {times})",
                        where=self.url,
                        remedy="check that it is running, and its address; the same command again goes on "
                        "from what was recorded",
                    ) from None
                time.sleep(min(passing.wait_s or PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S))
        raise AssertionError(most)

    def _exchange(self, request: urllib.request.Request) -> bytes:
        try:
            return within(self.timeout_s, lambda: self._request(request))
        except TimeoutError as error:
            self._unreached(error)

    def _request(self, request: urllib.request.Request) -> bytes:
        try:
            with _OPENER.open(request, timeout=self.timeout_s) as answer:
                content: bytes = answer.read(LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                body = self._without_key(error.read(LARGEST_REFUSAL).decode(errors="replace"))
            if is_final(error.code, body):
                raise refusal(error.code, body, self.url) from None
            raise _Passing(f"HTTP {error.code}: {words(body)}", _seconds(error.headers)) from None
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            self._unreached(error)
        if len(content) > LARGEST_ANSWER:
            problem = "the server's answer has no end"
            expected = f"{LARGEST_ANSWER} bytes at most"
            remedy = "check the address, and what the server answers there"
            raise DamagedError(problem, expected=expected, where=self.url, remedy=remedy)
        return content

    def _unreached(self, error: Exception) -> NoReturn:
        """Tell a server that does not answer from one that may yet."""
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            raise IncompleteError(
                "the server did not answer in time",
                expected=f"a whole answer within {self.timeout_s:g} s",
                where=self.url,
                remedy="give it more time (--timeout), or fewer questions at once (--concurrency), and the "
                "same command again: what was recorded is kept",
            ) from None
        if isinstance(reason, ssl.SSLError):
            raise IncompleteError(
                "the server's TLS does not do", found=reason, where=self.url, remedy="check the address"
            ) from None
        raise _Passing(str(reason) or type(reason).__name__) from None

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "toolkit"}
        key = self._key()
        return headers if key is None else headers | {"Authorization": f"Bearer {key}"}

    def _key(self) -> str | None:
        if self.key_variable is None:
            return None
        key = os.environ.get(self.key_variable, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            problem = f"the environment variable {self.key_variable} holds no API key"
            found = "something else" if key else "nothing"
            remedy = "set it, or leave --api-key-env out for a server that wants no key"
            raise UsageError(problem, expected="visible ASCII characters", found=found, remedy=remedy)
        return key

    def _without_key(self, text: str) -> str:
        key = self._key()
        return text if key is None else text.replace(key, "(the key)")


class _Passing(Exception):  # noqa: N818 - a signal to ask again, not an error
    """The server may answer another time."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_s = wait_s


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow nobody elsewhere: the key would go there, too."""

    def redirect_request(self, *_: Any) -> None:
        """Return no request."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def server_url(text: str) -> str:
    """Return a server's address as it is asked, from what a user calls it."""
    try:
        parts = urlsplit(text.strip())
        sound = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    is_plain = sound and parts.scheme in {"http", "https"} and "@" not in parts.netloc
    if not is_plain or parts.query or parts.fragment:
        problem = "this is not the address of a server"
        found = "an address with a password" if "@" in text else text[:EXCERPT]
        remedy = "an API key is given by the variable that holds it: --api-key-env NAME"
        raise UsageError(problem, expected="http://localhost:8000/v1", found=found, remedy=remedy)
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def _seconds(headers: Any) -> float | None:
    """Return how long a server asks to be left alone; None where it does not say."""
    text = str(headers.get("Retry-After", ""))
    return float(text) if text.isascii() and text.isdigit() else None


def _read_json(content: bytes, url: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        found = content[:EXCERPT].decode(errors="replace")
        remedy = "check that the address is that of an OpenAI-compatible server; mostly it ends in /v1"
        raise DamagedError("the server's answer is not JSON", found=found, where=url, remedy=remedy) from None
