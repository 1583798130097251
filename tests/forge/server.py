"""Authorities on loopback: forged ones that fail as told, and `openssl ts -reply` as an independent one."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, Self

from tests.forge import der
from tests.forge.keys import DIGEST_OIDS
from tests.forge.pki import house
from tests.forge.token import PAGE, POLICY, Recipe, stamped

REPLY = "application/timestamp-reply"


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # five callers at once, as it is by default, keep the sixth waiting for seconds


class _Loopback:
    """A server on a free port of this machine, while the context lasts; it has a root certificate."""

    root: bytes

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._ended.clear()
        self._server = _Server(("127.0.0.1", 0), type("Bound", (Handler,), {"authority": self}))
        # The interval is how long leaving takes at most.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/tsr"

    def respond(self, raw: bytes, handler: Handler) -> None:
        raise NotImplementedError


class Handler(BaseHTTPRequestHandler):
    """Hands a request's body to its authority."""

    authority: ClassVar[_Loopback]

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.authority.requests.append(raw)
        try:
            self.authority.respond(raw, self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing on stderr."""

    def send(self, body: bytes, status: int = 200, kind: str = REPLY, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class Authority(_Loopback):
    """An authority that answers with forged tokens, honest but for one fault."""

    def __init__(
        self,
        label: str = "A",  # which house it is of; two labels share no key
        fault: str | Callable[[Recipe], Recipe] | None = None,  # of `FAULTS`, or what changes an answer
        at: datetime | None = None,  # the time it states; the machine's own where None
        pause: float = 1,  # seconds between two bytes of a slow answer
    ) -> None:
        super().__init__()
        if isinstance(fault, str) and fault not in FAULTS:
            raise ValueError(f"no fault is called {fault}: {', '.join(FAULTS)}")
        self.house, self.fault, self.at, self._pause = house(label), fault, at, pause
        self.root = self.house.root.der

    def recipe(self, raw: bytes) -> Recipe:
        """Return the honest answer to a request."""
        _, imprint, *rest = der.children(raw)
        identifier, hashed = der.children(imprint)
        given = {part[0]: der.body(part) for part in rest}
        names = {der.oid(dotted): name for name, dotted in DIGEST_OIDS.items()}
        return Recipe(
            signer=self.house.signer,
            imprint_digest=names[next(der.children(identifier))],
            imprint=der.body(hashed),
            nonce=int.from_bytes(given[0x02], "big", signed=True) if 0x02 in given else None,
            policy=POLICY,
            certificates=None if given.get(0x01) == b"\xff" else (),
            gen_time=stamped(self.at or datetime.now(UTC)),
            serial=len(self.requests),
        )

    def respond(self, raw: bytes, handler: Handler) -> None:
        good, change = self.recipe(raw), _CHANGES.get(self.fault, self.fault)
        if self.fault in _TRANSPORT:
            _TRANSPORT[self.fault](self, good, handler)
        else:
            handler.send((change(good) if change else good).make())

    def drip(self, body: bytes) -> Iterator[bytes]:
        """Yield one byte after another, until nobody wants the rest."""
        for position in range(len(body)):
            if self._ended.wait(self._pause if position else 0):
                return
            yield body[position : position + 1]

    def slowly(self, good: Recipe, handler: Handler) -> None:
        body = good.make()
        handler.send(b"", length=str(len(body)))
        for byte in self.drip(body):
            handler.wfile.write(byte)
            handler.wfile.flush()

    def third_time(self, good: Recipe, handler: Handler) -> None:
        if len(self.requests) > 2:
            handler.send(good.make())
        else:
            handler.send(b"busy\n", 503, "text/plain", Retry_After="0")

    def elsewhere(self, good: Recipe, handler: Handler) -> None:
        if handler.path.startswith("/moved"):
            handler.send(good.make())
        else:
            handler.send(b"", 307, "text/plain", Location="/moved")


def _days_off(good: Recipe, days: int) -> Recipe:
    moment = datetime.strptime(str(good.gen_time), "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return good.but(gen_time=stamped(moment + timedelta(days=days)))


def _hang_up(_: Authority, __: Recipe, handler: Handler) -> None:
    handler.close_connection = True


_CHANGES: dict[str, Callable[[Recipe], Recipe]] = {
    "wrong nonce": lambda good: good.but(nonce=(good.nonce or 0) + 1),
    "no nonce": lambda good: good.but(nonce=None),
    "wrong imprint": lambda good: good.but(imprint=der.flipped(good.imprint or b"\x00")),
    "rejection": lambda good: good.but(status=2, text="Request rate exceeded", failure=25, with_token=False),
    "genTime off by days": lambda good: _days_off(good, -3),
    "genTime in the future": lambda good: _days_off(good, 3),
    "no certificate": lambda good: good.but(certificates=()),
    "other policy": lambda good: good.but(policy=POLICY + ".9"),
    "wrong signature": lambda good: good.but(edits=(("signature", der.flipped),)),
}

_TRANSPORT: dict[str, Callable[[Authority, Recipe, Handler], None]] = {
    "slow": Authority.slowly,
    "truncated": lambda _, good, handler: handler.send(good.make()[:-100]),
    "less than announced": lambda _, good, handler: handler.send(good.make(), length="100000"),
    "HTML": lambda _, __, handler: handler.send(PAGE, kind="text/html"),
    "HTTP 404": lambda _, __, handler: handler.send(PAGE, 404, "text/html"),
    "HTTP 500": lambda _, __, handler: handler.send(PAGE, 500, "text/html"),
    "HTTP 503 twice": Authority.third_time,
    "redirect": Authority.elsewhere,
    "redirect in a circle": lambda _, __, handler: handler.send(b"", 307, "text/plain", Location="/tsr"),
    "empty body": lambda _, __, handler: handler.send(b""),
    "5 MB body": lambda _, __, handler: handler.send(bytes(5_000_000)),
    "closes the connection": _hang_up,
}

FAULTS = (*_CHANGES, *_TRANSPORT)

ROOT, STAMPER = "/O=OpenSSL/CN=OpenSSL Root", "/O=OpenSSL/CN=OpenSSL Stamper"
_CONFIGURATION = Path(__file__).with_name("openssl.cnf").read_text(encoding="utf-8")


class OpensslAuthority(_Loopback):
    """`openssl ts -reply` behind HTTP: keys, certificates and serial file in a folder that goes with it."""

    def __init__(self) -> None:
        super().__init__()
        # `openssl ts` reads, counts up and writes its serial file without a lock of its own.
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory(prefix="forge-")
        self._folder = Path(self._temporary.name)
        configuration = _CONFIGURATION.format(folder=self._folder, policy=POLICY)
        self._folder.joinpath("ts.cnf").write_text(configuration, encoding="utf-8")
        self._folder.joinpath("serial").write_text("01\n", encoding="utf-8")
        new_key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        usage = "-addext keyUsage=critical,keyCertSign,cRLSign"
        self._run(f"req -x509 {new_key} -keyout root.key -out root.pem -days 3650 {usage} -subj", ROOT)
        self._run(f"req {new_key} -keyout signer.key -out signer.csr -subj", STAMPER)
        self._run(
            "x509 -req -in signer.csr -CA root.pem -CAkey root.key -set_serial 7 -days 3650"
            " -extfile ts.cnf -extensions signer -out signer.pem"
        )
        self.root = self._run("x509 -in root.pem -outform DER")
        return super().__enter__()

    def __exit__(self, *details: object) -> None:
        super().__exit__(*details)
        self._temporary.cleanup()

    def respond(self, raw: bytes, handler: Handler) -> None:
        with self._lock:
            self._folder.joinpath("request").write_bytes(raw)
            self._run("ts -reply -config ts.cnf -queryfile request -out reply")
            reply = self._folder.joinpath("reply").read_bytes()
        handler.send(reply)

    def _run(self, words: str, *further: str) -> bytes:
        command = ("openssl", *words.split(), *further)
        return subprocess.run(command, cwd=self._folder, capture_output=True, check=True).stdout
