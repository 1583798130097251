"""Serving the site to this machine alone."""

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

from toolkit.errors import UsageError
from toolkit.website.checking import check_is_site
from toolkit.website.page import POLICY

LOOPBACK = "127.0.0.1"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".sha256": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
# Whatever else there is, registers and tokens among it, is for saving.
OTHER = "application/octet-stream"


class SiteServer(ThreadingHTTPServer):
    """A server of one site on the loopback interface.

    Args:
        folder: of the site.
        port: where to listen; 0 lets the system choose.
        base: the path below which the site lies.

    Raises:
        IncompleteError: the folder holds no site.
        UsageError: the port or the path cannot be had.
    """

    daemon_threads = True

    def __init__(self, folder: Path, port: int, base: str = "/") -> None:
        check_is_site(folder)
        self.folder = folder.resolve()
        self.base = _base(base)
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} cannot be had",
                found=error.strerror or error,
                where=LOOPBACK,
                remedy="give another port, or --port 0 for any that is free",
            ) from None

    @property
    def address(self) -> str:
        """Where a browser finds the front page."""
        return f"http://{LOOPBACK}:{self.server_port}{self.base}"

    def run(self) -> None:
        """Serve until an interrupt."""
        try:
            self.serve_forever()
        except KeyboardInterrupt:
            pass  # this is how one ends it
        finally:
            self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Let readers leave in the middle of a page without a word."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def find(self, target: str) -> Path | str | None:
        """Return the file that a request asks for, the address to ask for instead, or None."""
        path = unquote(target.partition("?")[0].partition("#")[0])
        if path + "/" == self.base:
            return quote(self.base)
        parts = path.removeprefix(self.base).split("/")
        if not path.startswith(self.base) or not _names_a_place(parts):
            return None
        try:
            file = self.folder.joinpath(*parts).resolve()
            is_folder = file.is_dir()
        except OSError:
            return None  # a name that is too long is no file's
        if not file.is_relative_to(self.folder):
            return None
        if is_folder and parts[-1]:
            return quote(f"{path}/")  # its pages' links begin below it
        return (file / "index.html" if is_folder else None) if parts[-1] == "" else file


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: SiteServer
    server_version = "toolkit"
    sys_version = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a file."""
        file = self.server.find(self.path)
        if isinstance(file, str):
            self._send(HTTPStatus.MOVED_PERMANENTLY, b"", "text/plain", location=file)
            return
        try:
            content = file.read_bytes() if file is not None and file.is_file() else None
        except OSError:
            content = None
        if content is None or file is None:
            text = b"There is no such page on this site.\n"
            self._send(HTTPStatus.NOT_FOUND, text, "text/plain; charset=utf-8")
            return
        self._send(HTTPStatus.OK, content, TYPES.get(file.suffix, OTHER))

    def do_HEAD(self) -> None:
        """Answer with what would come before a file."""
        self.do_GET()

    def _send(self, status: HTTPStatus, content: bytes, kind: str, *, location: str = "") -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",  # the next build is seen at once
            **({"Location": location} if location else {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing: what a reader looks at is theirs."""


def _names_a_place(parts: list[str]) -> bool:
    """Whether the parts of a path can name something of the site: none is hidden or leads upwards."""
    is_plain = all(not part.startswith(".") and not set(part) & set("\\\0") for part in parts)
    return is_plain and all(parts[:-1])


def _base(path: str) -> str:
    """Return a path with a slash at both ends."""
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") or not part.isprintable() or set(part) & set("\\?#% ") for part in parts):
        raise UsageError("this is no path for a site", expected="a path such as /some/path/", found=path)
    return "/" + "".join(f"{part}/" for part in parts)
