"""An authority that fails is named with its reason, asked again where that can help, and never for long."""

import contextlib
import signal
import socketserver
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest

from tests.forge.server import FAULTS, Authority
from tests.forge.token import POLICY
from tests.registrations import chained, rehash
from tests.unit.decisions.study import run_row
from tests.unit.prereg import drafts
from tests.unit.prereg.drafts import (
    add_to,
    amendment,
    demonstrate,
    demonstrators,
    deviation,
    exit_codes,
    freeze_with,
    problems,
    source,
    told,
    verify,
)
from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.prereg import freeze as freezing
from toolkit.prereg.authority import Online
from toolkit.prereg.chain import PENDING, begin, locked
from toolkit.prereg.record import Trusted
from toolkit.prereg.registration import load_registration
from toolkit.prereg.verification import Check, StudyRuns


@pytest.fixture
def good(pair):
    return pair[0]


# Each fault: how often it is asked, and what is said of it.
FINAL, AGAIN = 1, 3
REASONS = {
    "wrong nonce": (FINAL, "request: "),
    "no nonce": (FINAL, "request: "),
    "wrong imprint": (FINAL, "imprint: "),
    "rejection": (AGAIN, "Request rate exceeded"),
    "slow": (AGAIN, "no complete answer within 0.2 s"),
    "truncated": (AGAIN, "encoding: "),
    "HTML": (AGAIN, "form: "),
    "HTTP 404": (FINAL, "HTTP 404"),
    "HTTP 500": (AGAIN, "HTTP 500"),
    "redirect": (FINAL, "HTTP 307"),
    "redirect in a circle": (FINAL, "HTTP 307"),
    "empty body": (AGAIN, "form: "),
    "5 MB body": (FINAL, "more than 1048576 bytes"),
    "closes the connection": (AGAIN, "the connection failed or broke off"),
    "less than announced": (AGAIN, "the connection failed or broke off"),
    "genTime in the future": (AGAIN, "time: "),
    "no certificate": (FINAL, "certificate"),
    "other policy": (FINAL, "authority: "),
    "wrong signature": (FINAL, "signature: "),
}


def test_every_fault_is_tried() -> None:
    assert {*REASONS, "HTTP 503 twice", "genTime off by days"} == set(FAULTS)


@pytest.mark.parametrize("fault", REASONS)
def test_nothing_is_frozen_by_an_authority_that_fails(draft, good, fault) -> None:
    times, reason = REASONS[fault]
    with Authority("B", fault, pause=0.01) as server:
        bad = source(server, "Authority B", 0.2 if fault == "slow" else 20, policies=(POLICY,))
        began = time.monotonic()
        with pytest.raises(IncompleteError) as caught:
            freeze_with(draft, good, bad)
    assert time.monotonic() - began < 5
    assert server.url in caught.value.problem
    assert reason in (caught.value.found or "")
    assert "run the same command again" in (caught.value.remedy or "")
    assert caught.value.exit_code == 3
    assert len(server.requests) == times
    assert drafts.is_untouched(draft)
    assert drafts.opened(draft).name == "small"


def test_a_time_days_off_is_no_agreement_and_one_that_was_put_right_is_taken(draft, good) -> None:
    """The wrong token must not be kept for the next attempt, which it would fail as well."""
    with Authority("B", "genTime off by days") as server:
        bad = source(server, "Authority B")
        with pytest.raises(VerificationError, match="times agree") as caught:
            freeze_with(draft, good, bad)
        assert "times disagree by 3.0 days" in (caught.value.found or "")
        assert (len(server.requests), caught.value.exit_code) == (1, 1)
        assert drafts.is_untouched(draft)
        server.fault = None
        freeze_with(draft, good, bad)
    assert verify(draft, good, bad).verdict == "verified"


def test_a_busy_authority_is_asked_a_third_time(draft, good) -> None:
    with Authority("B", "HTTP 503 twice") as server:
        busy = source(server, "Authority B")
        freeze_with(draft, good, busy)
    assert len(server.requests) == 3
    assert len({request[-20:] for request in server.requests}) == 3, "each request has a nonce of its own"
    assert problems(verify(draft, good, busy)) == []


def test_nobody_at_the_address_is_said(draft, good) -> None:
    with Authority("B") as server:
        gone = source(server, "Authority B")
    with pytest.raises(IncompleteError, match=r"no timestamp from http://127\.0\.0\.1") as caught:
        freeze_with(draft, good, gone)
    assert caught.value.found == "connection refused"
    assert drafts.is_untouched(draft)


@pytest.mark.parametrize("address", ["http://", "http://[::1", "http://127.0.0.1:99999/", "http://a b/"])
def test_an_address_that_is_none_is_an_error_that_names_it(draft, good, address) -> None:
    nowhere = Online(Trusted("Nowhere", "Nobody", address, ("0" * 64,)), (), 5)
    with pytest.raises((IncompleteError, UsageError)) as caught:
        freeze_with(draft, good, nowhere)
    assert address in str(caught.value)
    assert drafts.is_untouched(draft)


DROPS = 40


@contextmanager
def raw_server(head: bytes, drip: bytes, pause: float):
    """Answer with `head`, then with `drip` again and again, longer than anybody should listen."""
    ended = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with suppress(OSError):
                self.request.sendall(head)
                for _ in range(DROPS):
                    if ended.wait(pause):
                        break
                    self.request.sendall(drip)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        ended.set()
        server.shutdown()


DRIPS = {
    "silence": (b"", b""),
    "a status line without an end": (b"", b"H"),
    "headers without an end": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "a header without an end": (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
    "a body without an end": (b"HTTP/1.1 200 OK\r\n\r\n", b"0"),
    "chunks without an end": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n0\r\n"),
    "a chunk's length without an end": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "one hundred promises": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("drip", DRIPS)
def test_whatever_drips_in_an_exchange_ends_in_time(drip) -> None:
    with raw_server(*DRIPS[drip], pause=0.05) as url:
        began = time.monotonic()
        with pytest.raises(IncompleteError) as caught:
            obtain(url, 0.15)
        took = time.monotonic() - began
    assert took < 1.6  # those that end only with the server take two
    assert caught.value.found in {"no answer within 0.15 s", "no complete answer within 0.15 s"}


def obtain(url: str, timeout_s: float):
    def never(_):
        raise AssertionError("nothing came that could be judged")

    server = Trusted("Server", "Nobody", url, ("0" * 64,))
    return Online(server, (), timeout_s, attempts=1).obtain(bytes(32), never, print)


def test_a_small_answer_that_unpacks_to_much_is_refused() -> None:
    import gzip

    packed = gzip.compress(bytes(20_000_000))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with raw_server(head + packed, b"", pause=0.05) as url, pytest.raises(IncompleteError) as caught:
        obtain(url, 10)
    assert "more than 1048576 bytes" in (caught.value.found or "")


@pytest.mark.parametrize(
    "garbage", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 banana\r\n\r\n", b"\x16\x03\x01\x00\x05", b"\r\n\r\n"]
)
def test_a_server_that_speaks_something_else_is_an_error_like_others(garbage) -> None:
    with raw_server(garbage, b"", pause=0.01) as url, pytest.raises(IncompleteError) as caught:
        obtain(url, 0.15)
    assert caught.value.found


UNUSUAL = {
    "a fraction of nine digits": lambda good: good.but(gen_time=good.gen_time[:-1] + ".123456789Z"),
    "granted with modifications": lambda good: good.but(status=1),
    "its signer by key": lambda good: good.but(by_key=True),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_what_verifies_is_taken_however_unusual(draft, good, kind) -> None:
    with Authority("B", UNUSUAL[kind], at=datetime.now(UTC) - timedelta(seconds=2)) as server:
        odd = source(server, "Authority B")
        freeze_with(draft, good, odd)
    assert len(server.requests) == 1
    assert problems(verify(draft, good, odd)) == []


def test_credentials_of_the_user_are_not_sent(draft, good, tmp_path, monkeypatch) -> None:
    """A .netrc is for whoever it names; a time-stamping authority is sent a hash and nothing else."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    seen: list[str | None] = []

    class Nosy(Authority):
        def respond(self, raw, handler):
            seen.append(handler.headers.get("Authorization"))
            super().respond(raw, handler)

    with Nosy("B") as server:
        freeze_with(draft, good, source(server, "Authority B"))
    assert seen == [None]


def test_an_authority_that_the_user_limits_to_a_policy_is_held_to_it(draft, good) -> None:
    """What the registration's own trust file leaves out, the reader's still says."""
    with Authority("B") as server:
        other = source(server, "Authority B")
        freeze_with(draft, good, other)
        strict = source(server, "Authority B", policies=(POLICY + ".9",)).trusted
    assert verify(draft, good, strict).verdict == "not_verified"


# -------------------------------------------------------------------------- the times of what is added later


def ago(hours: float) -> datetime:
    return datetime.now(UTC) - timedelta(hours=hours)


@pytest.fixture
def frozen_ago(draft, servers, sources):
    """A registration that was frozen nine hours ago; the authorities' clocks go on to five hours ago."""
    for hours in (9, 5):
        for server in servers:
            server.at = ago(hours)
        if hours == 9:
            freeze_with(draft, *sources)
    return draft


def test_an_entry_older_than_the_freeze_fails_the_eighth_step(frozen_ago, servers, sources) -> None:
    for server in servers:
        server.at = ago(72)
    add_to(frozen_ago, amendment(), *sources)
    result = verify(frozen_ago, *sources)
    assert problems(result) == [(8, "failed")]
    assert "A1 is older than what stands before it" in told(result, 8)


def test_an_entrys_times_have_to_agree(frozen_ago, servers, sources, monkeypatch) -> None:
    """As at the freeze (check 17); whoever verifies cannot rely on who recorded it having checked."""
    servers[1].at = ago(30 * 24)
    with monkeypatch.context() as patch:
        patch.setattr(freezing, "agreement", lambda _: Check(6, "times agree", "passed", ""))
        add_to(frozen_ago, amendment(), *sources)
    result = verify(frozen_ago, *sources)
    assert problems(result) == [(8, "failed")], told(result, 8)


def runs(launched: datetime) -> tuple[StudyRuns]:
    return (StudyRuns("small", [run_row("X", "paired", 0, launched_at=launched)], ["primary"]),)


def test_an_amendment_after_the_first_run_fails_the_ninth_step(frozen_ago, sources) -> None:
    add_to(frozen_ago, amendment(), *sources)
    assert problems(verify(frozen_ago, *sources, studies=runs(ago(2)))) == []
    late = verify(frozen_ago, *sources, studies=runs(ago(7)))
    assert problems(late) == [(9, "failed")]
    assert "A1 made after the first run" in told(late, 9)
    assert problems(verify(frozen_ago, *sources, studies=runs(ago(12))))[0] == (7, "failed")


def test_a_deviation_after_the_first_run_is_what_deviations_are_for(frozen_ago, sources) -> None:
    add_to(frozen_ago, deviation(), *sources)
    assert problems(verify(frozen_ago, *sources, studies=runs(ago(7)))) == []


@pytest.fixture
def half(draft, servers, sources):
    """A draft for which one authority has answered, and the other was down."""
    servers[1].fault = "HTTP 404"
    with pytest.raises(IncompleteError, match="no timestamp"):
        freeze_with(draft, *sources)
    servers[1].fault = None
    return draft


def test_a_token_that_was_obtained_is_kept(half, servers, sources) -> None:
    assert drafts.is_untouched(half)
    kept = (half / PENDING / "evidence" / "freeze.authority-a.tsr").read_bytes()
    freeze_with(half, *sources)
    assert [len(server.requests) for server in servers] == [1, 2]
    assert (half / "evidence" / "freeze.authority-a.tsr").read_bytes() == kept
    assert verify(half, *sources).verdict == "verified"
    assert not (half / PENDING).exists()


def test_after_a_change_every_authority_is_asked_anew(half, servers, sources) -> None:
    (half / "protocol.md").write_bytes(b"# Protocol, revised\n")
    freeze_with(half, *sources)
    assert [len(server.requests) for server in servers] == [2, 2]
    assert problems(verify(half, *sources)) == []


@pytest.mark.parametrize("junk", [b"", b"0\x00", b"<html>"])
def test_a_damaged_token_that_waits_is_obtained_anew(half, sources, junk) -> None:
    (half / PENDING / "evidence" / "freeze.authority-a.tsr").write_bytes(junk)
    freeze_with(half, *sources)
    assert problems(verify(half, *sources)) == []


def test_a_token_that_waited_too_long_is_obtained_anew(draft, servers, sources) -> None:
    """One authority answered, the other was down for three days: the first is asked again."""
    servers[0].at, servers[1].fault = datetime.now(UTC) - timedelta(days=3), "HTTP 404"
    with pytest.raises(IncompleteError):
        freeze_with(draft, *sources)
    servers[0].at = servers[1].fault = None
    freeze_with(draft, *sources)
    assert problems(verify(draft, *sources)) == []


FILES_OF_A_FREEZE = 10  # list, two tokens, two requests, two roots, trust file, record, chain
EVERY = pytest.param(tuple(range(FILES_OF_A_FREEZE)), marks=pytest.mark.slow)


@pytest.mark.parametrize("deaths", [(0, 9), EVERY], ids=["first and last", "every"])
def test_a_freeze_killed_between_two_renames_is_completed(tmp_path, servers, sources, deaths) -> None:
    lives = FILES_OF_A_FREEZE
    folders = [drafts.write_draft(tmp_path / str(death)) for death in (*deaths, lives)]
    codes = exit_codes("freeze", folders, sources, [*deaths, lives])
    assert codes == [-signal.SIGKILL] * len(deaths) + [0]
    asked = [len(server.requests) for server in servers]
    for folder in folders[:-1]:
        with pytest.raises(IncompleteError):
            load_registration(folder)
        assert drafts.opened(folder).name == "small"
        freeze_with(folder, *sources)
        assert verify(folder, *sources).verdict == "verified"
    assert [len(server.requests) for server in servers] == asked
    assert verify(folders[-1], *sources).verdict == "verified"


FILES_OF_AN_AMENDMENT = 8  # two tokens, two requests, two roots, the amendment, chain


@pytest.mark.slow
def test_an_amendment_killed_between_any_two_renames_is_completed(tmp_path, servers, sources) -> None:
    folders = [drafts.write_draft(tmp_path / str(death)) for death in range(FILES_OF_AN_AMENDMENT + 1)]
    for folder in folders:
        freeze_with(folder, *sources)
    codes = exit_codes("amend", folders, sources, [*range(FILES_OF_AN_AMENDMENT + 1)])
    assert codes == [-signal.SIGKILL] * FILES_OF_AN_AMENDMENT + [0]
    for folder in folders[:-1]:
        if not load_registration(folder).amendments:
            drafts.add_to(folder, amendment(), *sources)
        assert problems(verify(folder, *sources)) == []


def test_a_lock_left_by_a_process_that_ended_holds_nobody_up(draft) -> None:
    (draft / ".lock").write_bytes(b"")
    with locked(draft):
        assert (draft / ".lock").exists()


def test_whoever_waited_with_an_old_lock_does_not_share_the_new_one(draft, monkeypatch) -> None:
    """Between opening the file and locking it, its holder may end and remove it, and a third one come."""
    import fcntl

    lock = fcntl.flock
    with contextlib.ExitStack() as third:

        def late(stream, operation):
            monkeypatch.setattr(fcntl, "flock", lock)
            (draft / ".lock").unlink()
            third.enter_context(locked(draft))
            lock(stream, operation)

        monkeypatch.setattr(fcntl, "flock", late)
        with pytest.raises(UsageError, match="another command is at work"), locked(draft):
            pass


@pytest.fixture
def shown(draft):
    demonstrate(draft)
    return draft


def test_a_demonstration_says_what_it_is(shown) -> None:
    result = verify(shown)
    assert (result.verdict, result.standing) == ("verified", "demonstration")
    assert result.promise.startswith("DEMONSTRATION: its authorities were made for the occasion")
    assert 'standing = "demonstration"' in (shown / "record.toml").read_text()


def test_a_demonstrations_keys_are_written_nowhere(tmp_path, draft) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    sources = demonstrate(draft)
    keys = [source._key for source in sources]  # noqa: SLF001 - what must be found nowhere
    secrets = [key.private_numbers().private_value.to_bytes(32, "big") for key in keys]
    secrets += [key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()) for key in keys]
    written = [path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert len(written) > 8
    assert not [raw for raw in written if b"PRIVATE" in raw or any(secret in raw for secret in secrets)]


def test_a_demonstration_relabelled_as_public_is_not_verified(shown) -> None:
    record = shown / "record.toml"
    record.write_text(record.read_text().replace('"demonstration"', '"public"', 1))
    rehash(shown)
    result = verify(shown)
    assert (result.verdict, result.standing, problems(result)) == ("not_verified", "public", [(5, "failed")])


def test_a_demonstration_cut_short_can_become_public(shown, pair) -> None:
    (shown / "LATER.chain").unlink()
    begin(shown, (shown / "FROZEN.sha256").read_bytes())
    freeze_with(shown, *pair)
    result = verify(shown, *pair)
    assert (result.verdict, result.standing, chained(shown)) == ("verified", "public", ["record.toml"])
    assert result.registration == drafts.NAME


def test_a_demonstration_is_amended_by_authorities_made_for_it(shown) -> None:
    add_to(shown, drafts.amendment(), *demonstrators())
    add_to(shown, drafts.deviation(), *demonstrators())
    result = verify(shown)
    assert (result.verdict, problems(result), result.standing) == ("verified", [], "demonstration")
    added = ["trust/A1.toml", "amendments/A1.toml", "trust/D1.toml", "deviations/D1.toml"]
    assert chained(shown)[1:] == added
