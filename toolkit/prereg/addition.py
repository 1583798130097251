"""Adding to a frozen registration: an amendment, which changes rules, or a deviation, which records an event.

1. The registration is whole, and the file says what such a file has to, under an id that is new.
2. An amendment's rules are rules, each able to pass and to miss.
3. The chain with its new line is timestamped like the freeze, each token verified completely.
4. The authorities are independent and agree; then file, tokens and chain are written, the chain last.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from toolkit.errors import DamagedError, UsageError
from toolkit.files import read_bytes, write_all
from toolkit.prereg import record
from toolkit.prereg.chain import CHAIN, extend_chain
from toolkit.prereg.evidence import Judged
from toolkit.prereg.freeze import PREFIX, check_slugs, require
from toolkit.prereg.hashlist import LARGEST_FROZEN, LARGEST_LIST
from toolkit.prereg.pending import begin, discard, locked
from toolkit.prereg.record import AMENDMENTS, DEVIATIONS, Amendment, Deviation
from toolkit.prereg.registration import ADDED_TRUST, Registration, load_registration
from toolkit.prereg.timestamping import Source, timestamp
from toolkit.prereg.trust import Trusted, write_trust

_IDENTIFIER = re.compile(r"[A-Za-z]\w{0,39}", re.ASCII)
_A_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Added:
    """What was added."""

    registration: str  # its name
    id: str  # of the amendment or deviation
    file: str  # where it lies, relative to the registration
    link: str  # the last link of the chain
    # The tokens, verified; none where the registration's own freeze was made elsewhere
    tokens: tuple[Judged, ...]


def read_addition(
    registration: Registration, path: Path, *, after_runs: bool = False
) -> tuple[Amendment | Deviation, bytes]:
    """Read a file that is to be added (step 1)."""
    content = read_bytes(path, LARGEST_FROZEN)
    if after_runs:
        content = _with_after_runs(content)
    entry: Amendment | Deviation
    try:
        head = tomllib.loads(content.decode())
        if "amendment" in head:
            entry = record.read_amendment(f"{AMENDMENTS}/{head['amendment']['id']}.toml", content)
        else:
            entry = record.read_deviation(f"{DEVIATIONS}/{head['deviation']['id']}.toml", content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(
            f"{path.name} does not say what it has to",
            expected="what `toolkit amend --template` or `toolkit deviate --template` prints, filled in",
            found=f"{type(error).__name__}: {error}",
            where=path,
        ) from None
    _check_entry(registration, entry)
    return entry, content


def _with_after_runs(content: bytes) -> bytes:
    """Return an amendment's file that says of itself that it was made after runs."""
    if re.search(rb"^\s*after_runs\s*=", content, re.MULTILINE):
        return content
    return re.sub(
        rb"^([ \t]*\[amendment\].*)$", rb"\1\nafter_runs = true", content, count=1, flags=re.MULTILINE
    )


def add(
    registration: Registration,
    entry: Amendment | Deviation,
    content: bytes,
    sources: Sequence[Source],
    known: Sequence[Trusted],
    *,
    check: Callable[[Registration], None],
    say: Callable[[str], None] = lambda _: None,
) -> Added:
    """Add a file to a registration (steps 2 to 4)."""
    folder = registration.folder
    with locked(folder):
        fresh = load_registration(folder)
        _check_entry(fresh, entry)
        check(fresh)  # 2
        name = f"{AMENDMENTS if isinstance(entry, Amendment) else DEVIATIONS}/{entry.id}.toml"
        trusted = tuple(source.trusted for source in sources)
        check_slugs(trusted)
        files = {**_trust_file(fresh, entry, trusted), name: content}
        chain = read_bytes(folder / CHAIN, LARGEST_LIST)
        for added, raw in files.items():
            chain = extend_chain(chain, fresh.sha256, added, raw)
        evidence: dict[str, bytes] = {}
        tokens: tuple[Judged, ...] = ()
        if fresh.record.is_restated:
            begin(folder, chain)
        else:
            evidence, tokens = timestamp(folder, entry.id, chain, sources, say)  # 3
            require(folder, tokens, trusted if fresh.record.standing == record.DEMONSTRATION else known)  # 4
        write_all(folder, {**evidence, **files, CHAIN: chain})
        discard(folder)
        link = load_registration(folder).entries[-1].link
    return Added(fresh.name, entry.id, name, link, tokens)


def _trust_file(
    registration: Registration, entry: Amendment | Deviation, trusted: tuple[Trusted, ...]
) -> dict[str, bytes]:
    """Return the trust file of an entry whose authorities are not those of the freeze."""
    frozen = {(authority.name, authority.roots) for authority in registration.trust_in()}
    if registration.record.is_restated or {(a.name, a.roots) for a in trusted} == frozen:
        return {}
    text = write_trust(trusted, f"The authorities that were to timestamp {entry.id}.")
    return {f"{ADDED_TRUST}/{entry.id}.toml": text.encode()}


def _check_entry(registration: Registration, entry: Amendment | Deviation) -> None:
    # As file names that some systems do not tell apart; the freeze's own evidence has a name, too.
    taken = {PREFIX, *(added.id.casefold() for added in registration.entries if added.id)}
    if not _IDENTIFIER.fullmatch(entry.id) or entry.id.casefold() in taken:
        raise UsageError(
            f"the id {entry.id!r} cannot be used",
            expected="letters and digits, a letter first, and none that is taken",
            found=f"taken: {', '.join(sorted(taken))}",
        )
    if not entry.seen:
        raise UsageError(f"{entry.id} does not say what had been seen", expected="a text `seen`")
    today = datetime.now(UTC).date()
    if isinstance(entry, Amendment) and abs(entry.dated - today) > _A_DAY:
        raise UsageError(
            f"{entry.id} is dated {entry.dated}, and an amendment is dated the day on which it is recorded",
            expected=f'dated = "{today}"',
        )
    if isinstance(entry, Deviation) and (entry.dated is None or entry.dated > today + _A_DAY):
        raise UsageError(
            f"{entry.id} does not say when it happened", expected="a day up to today", found=entry.dated
        )
