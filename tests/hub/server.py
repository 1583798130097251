"""A Hugging Face Hub for dataset repositories on loopback, of the standard library alone."""

import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.hub.faults import Fault, Kind
from tests.hub.handler import Handler
from tests.hub.store import Store


class FixtureHub:
    """A Hub that listens on loopback as long as it is entered.

    Args:
        token: what a writer, or a reader of a private repository, has to show; None where nobody has to.
        cas: folder of a local Xet store that files are kept in instead; None for LFS.
        page: entries of a page of a tree.
    """

    def __init__(self, *, token: str | None = None, cas: Path | None = None, page: int = 50) -> None:
        self.store = Store()
        self.token = token
        self.cas = cas
        self.page = page
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.lock = threading.RLock()
        self.is_gone = False
        self.ended = threading.Event()
        self.sent = 0
        handler = type("BoundHandler", (Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening: from now on nobody is there, nor at the end of a connection that was kept."""
        self.is_gone = True
        self.ended.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def fail(self, kind: Kind, where: str, times: int | None = None) -> Fault:
        """Switch a fault on for requests whose `METHOD /path` has the pattern."""
        fault = Fault(kind, where, times)
        self.faults.append(fault)
        return fault

    def mend(self) -> None:
        """Switch every fault off."""
        self.faults.clear()

    def asked(self, pattern: str) -> list[str]:
        """Return the requests so far whose `METHOD /path` has a pattern."""
        probe = Fault("hung_up", pattern)
        return [request for request in self.requests if probe.meets(request)]

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables with which a process meets this Hub, and nothing of the machine's own."""
        home = folder / "hf"
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_ASSETS_CACHE": str(home / "assets"),
            "HF_DATASETS_CACHE": str(home / "datasets"),
            "HF_TOKEN": self.token or "",
            "HF_TOKEN_PATH": str(home / "token"),
            "HF_HUB_DISABLE_XET": "1" if self.cas is None else "0",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
