"""What the Hub answers, read within bounds: of bytes, of time, and of where it may lead.

The Hub's own client reads an answer of any length for as long as it lasts, and writes under the name that the
answer gives itself. A Hub, a mirror or a proxy may mean harm; so whatever is read of one goes through here.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from toolkit.deadline import within
from toolkit.errors import DamagedError
from toolkit.registers.hub.client import PATIENCE, UnreachableError, endpoint, place

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

TIMEOUT_S = 10.0
"""How long the Hub may keep silent, as its own client has it."""
WHOLE = 3
"""How often that time all of an answer may take, before its bytes are counted."""
SLOWEST = 8192
"""Bytes a second: a line that brings fewer brings no study."""
LARGEST_ANSWER = 16 * 2**20
"""Bytes of a JSON answer: a page of a listing has a thousand files, in less than a megabyte."""
LARGEST_REFUSAL = 2**16
MOST_REDIRECTS = 5
_BLOCK = 2**16


def timeout_s() -> float:
    """Return how many seconds the Hub may keep silent, as the environment of its client says, else ten."""
    for name in ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT"):
        try:
            seconds = float(os.environ.get(name, ""))
        except ValueError:
            continue
        if 0 < seconds < float("inf"):
            return seconds
    return TIMEOUT_S


def read_json(path: str, *, document: object = None) -> Any:
    """Return what the Hub's interface answers."""
    body = read_bytes_of(f"{endpoint()}/api/{path}", LARGEST_ANSWER, is_file=False, document=document)
    return json.loads(body)


def read_pages(path: str, most: int) -> Iterator[Any]:
    """Yield the entries of a list that has pages."""
    url, count = f"{endpoint()}/api/{path}", 0
    while url:
        links: list[str] = []

        def note(answer: httpx.Response, links: list[str] = links) -> None:
            links.append(answer.links.get("next", {}).get("url", ""))

        entries = json.loads(read_bytes_of(url, LARGEST_ANSWER, is_file=False, note=note))
        if not isinstance(entries, list):
            raise TypeError("the Hub's list is no list")
        count += len(entries)
        if count > most or (links[0] and not entries):
            raise too_much("the Hub lists files without end", f"{most} files at most", f"{count} so far")
        yield from entries
        url = links[0]
        if url and not url.startswith(f"{endpoint()}/"):
            raise too_much("the Hub's list goes on elsewhere", endpoint(), url[:200])


def read_bytes_of(
    url: str,
    most: int,
    *,
    is_file: bool = True,
    document: object = None,
    headers: Mapping[str, str] | None = None,
    note: Callable[[httpx.Response], None] = lambda _: None,
) -> bytes:
    """Return all of an answer."""
    parts: list[bytes] = []
    stream(url, most, parts.append, is_file=is_file, document=document, headers=headers, note=note)
    return b"".join(parts)


def stream(
    url: str,
    most: int,
    write: Callable[[bytes], object],
    *,
    is_file: bool = True,
    document: object = None,
    headers: Mapping[str, str] | None = None,
    note: Callable[[httpx.Response], None] = lambda _: None,
) -> None:
    """Give the parts of an answer, as they arrive, to what writes them."""
    silence = timeout_s()
    seconds = WHOLE * silence + (most / SLOWEST if is_file else 0)
    deadline = time.monotonic() + seconds

    def read() -> None:
        with _answer(url, silence, document, headers) as answer:
            note(answer)
            stated = answer.headers.get("Content-Length", "")
            count = int(stated) if stated.isascii() and stated.isdigit() else 0
            if count > most:
                raise too_much("the Hub's answer is too long", f"{most} bytes at most", f"{count} bytes", url)
            count = 0
            for part in answer.iter_raw(_BLOCK):
                count += len(part)
                if count > most:
                    raise too_much("the Hub's answer has no end", f"{most} bytes at most", None, url)
                if time.monotonic() > deadline:  # whoever waited is gone
                    return
                write(part)

    _in_time(seconds, read, url)


def _in_time(seconds: float, read: Callable[[], T], url: str) -> T:
    from huggingface_hub.utils import httpx

    try:
        return within(seconds, read)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise UnreachableError(
            "the Hub does not answer in time",
            expected=f"a word every {timeout_s():g} s (HF_HUB_DOWNLOAD_TIMEOUT), all within {seconds:.0f} s",
            found=f"{type(error).__name__}: {error}",
            where=url,
            remedy=PATIENCE,
        ) from None


@contextmanager
def _answer(
    url: str, silence: float, document: object, headers: Mapping[str, str] | None
) -> Iterator[httpx.Response]:
    """Give an answer of success, its content not yet read; a few redirects are followed."""
    from huggingface_hub.utils import build_hf_headers, get_session

    session = get_session()
    known = build_hf_headers(library_name="paired-rollouts-toolkit")
    request = session.build_request(
        "GET" if document is None else "POST",
        url,
        # What is packed could be a thousand times as long when unpacked.
        headers={**known, "Accept-Encoding": "identity", **(headers or {})},
        json=document,
        timeout=silence,
    )
    for _ in range(MOST_REDIRECTS + 1):
        # The client would read a redirect's own content to its end.
        answer = session.send(request, stream=True, follow_redirects=False)
        try:
            if answer.next_request is None:
                _check_status(answer)
                yield answer
                return
            request = answer.next_request
        finally:
            answer.close()
    raise RuntimeError(f"more than {MOST_REDIRECTS} redirects")


def _check_status(answer: httpx.Response) -> None:
    """Raise what the Hub's client raises for an answer that is no success."""
    from huggingface_hub.utils import hf_raise_for_status, httpx

    if answer.is_success:
        return
    content = b""
    for part in answer.iter_raw(_BLOCK):
        content += part
        if len(content) > LARGEST_REFUSAL:
            break
    kept = {
        name: text for name, text in answer.headers.items() if name.lower().startswith(("x-", "content-type"))
    }
    hf_raise_for_status(
        httpx.Response(
            answer.status_code, headers=kept, content=content[:LARGEST_REFUSAL], request=answer.request
        )
    )
    raise RuntimeError(f"status {answer.status_code}")


def too_much(problem: str, expected: str, found: str | None, where: str | None = None) -> DamagedError:
    """Return the error for an answer beyond a bound."""
    return DamagedError(
        problem,
        expected=expected,
        found=found,
        where=where or endpoint(),
        remedy="do not use it: see that HF_ENDPOINT names a Hub that you trust",
    )


class Digest:
    """The two names that content has: its SHA-256, and git's, which counts its bytes first."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        self._sha256 = hashlib.sha256()
        self._blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)

    def update(self, part: bytes) -> None:
        """Take the next bytes."""
        self.count += len(part)
        self._sha256.update(part)
        self._blob.update(part)

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256."""
        return self._sha256.hexdigest()

    @property
    def blob(self) -> str:
        """What git calls a file of `size` bytes."""
        return self._blob.hexdigest()


def file_url(pinned: str, name: str) -> str:
    """Return where a file of a commit is."""
    repository, _, commit = pinned.partition("@")
    return f"{place(repository)}/resolve/{commit}/{quote(name)}"
