"""Serving the site to this machine alone."""

import sys
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from toolkit.errors import UsageError
from toolkit.site.checking import check_is_site
from toolkit.site.page import POLICY

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
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # the next build is seen at once
}
NOWHERE = ""


class SiteServer(ThreadingHTTPServer):
    """A server of one site on the loopback interface, below a path; port 0 lets the system choose."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int, base: str = "/") -> None:
        check_is_site(folder)
        parts = [part for part in base.split("/") if part]
        if any(part in (".", "..") or not part.isprintable() or set(part) & set("\\?#% ") for part in parts):
            raise UsageError("this is no path for a site", expected="a path such as /some/path/", found=base)
        self.base = "/" + "".join(f"{part}/" for part in parts)
        try:
            super().__init__((LOOPBACK, port), partial(_Handler, folder.resolve(), self.base))
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
        with self, suppress(KeyboardInterrupt):
            self.serve_forever()

    def handle_error(self, request: object, client_address: object) -> None:
        """Let readers leave in the middle of a page without a word."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(SimpleHTTPRequestHandler):
    """Answers with the site's files alone."""

    server_version = "toolkit"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(message)s.\n"

    def __init__(self, folder: Path, base: str, *connection: object) -> None:
        self.folder, self.base = folder, base
        super().__init__(*connection)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        """Return where a file lies; nowhere if it is hidden, or the path leads upwards or out of the site."""
        asked = unquote(path.partition("?")[0].partition("#")[0])
        below = asked.removeprefix(self.base) if asked != self.base[:-1] else ""
        *folders, name = below.split("/")
        is_plain = all(folders) and not any(
            part.startswith(".") or set(part) & set("\\\0") for part in (*folders, name)
        )
        if not is_plain or not f"{asked}/".startswith(self.base):
            return NOWHERE
        file = self.folder.joinpath(below).resolve()
        if not file.is_relative_to(self.folder):
            return NOWHERE
        return f"{file}/" if below and not name else str(file)

    def list_directory(self, *_: object) -> None:
        """Show no folder that has no page."""
        self.send_error(404)

    def guess_type(self, path: object) -> str:
        """Return what a file comes as."""
        return TYPES.get(Path(str(path)).suffix, OTHER)

    def end_headers(self) -> None:
        """Send with every answer what the site asks of browsers."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing: what a reader looks at is theirs."""
