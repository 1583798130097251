"""A site as the tests in the browser see it: served as in the world, and watched while it loads."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import CDPSession, ConsoleMessage, Page, Request, Response

from toolkit.site.server import SiteServer

BASE = "/below/some/path/"
SMALL = 120_000  # bytes of a page that is soon looked through
# A violation is an event, and not in every browser a message.
WATCH = """
document.addEventListener("securitypolicyviolation", (e) =>
  console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
"""
OpenPage = Callable[..., Page]
"""Opens a page: width, height, and whatever a browser's context takes."""
KIND = re.compile(rb'<body[^>]* data-kind="([\w-]+)"')


@dataclass(frozen=True)
class Served:
    """A site on this machine's loopback."""

    folder: Path  # of its files
    address: str  # of its front page, with a slash at the end

    @property
    def names(self) -> list[str]:
        """Return the names of all current pages, the front page first."""
        names = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.html"))
        return sorted(names, key=lambda name: (name != "index.html", name))

    def url(self, name: str) -> str:
        return self.address + quote(name)

    @cache  # noqa: B019 - a site lives as long as its tests
    def kinds(self, *, quick: bool = False) -> dict[str, str]:
        """Return the largest page of each kind, the hardest to show well; or the smallest ones."""
        kinds: dict[str, str] = {}
        sizes = {name: (self.folder / name).stat().st_size for name in self.names}
        for name in sorted(sizes, key=sizes.__getitem__, reverse=quick):
            if quick and sizes[name] > SMALL:
                continue
            match = KIND.search((self.folder / name).read_bytes())
            assert match, name
            kinds[match[1].decode()] = name
        return dict(sorted(kinds.items()))


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Serve a folder below a path, as it may lie anywhere."""
    server = SiteServer(folder, 0, BASE)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Served(folder, server.address)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Watch:
    """Everything that went wrong on a page, in words."""

    origin: str  # where requests may go
    wrong: list[str] = field(default_factory=list)

    def on(self, page: Page) -> Watch:
        """Begin to watch."""
        page.add_init_script(WATCH)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrong.append(f"{page.url}: {error}"))
        page.on("request", self._asked)
        page.on("response", self._answered)
        page.on("requestfailed", self._failed)
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
        return self

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.location.get('url')}: {message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "data:", "blob:" + self.origin)):
            self.wrong.append(f"asked for {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.wrong.append(f"{response.status} {response.url}")

    def _failed(self, request: Request) -> None:
        # The next page is opened while this one still loads what it draws with: that is no failure.
        if request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"{request.failure} {request.url}")


# How a page loads for a reader: when it is ready, and what of it moves.
# Cumulative layout shift, as browsers count it: https://web.dev/articles/cls calls 0.1 good.
MOST_SHIFT = 0.05
SHIFT = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
# Frames without a further shift after which a page counts as still.
STILL = """
async () => {
  let before = -1;
  for (let still = 0; still < 20; still += 1) {
    if (window.shifted !== before) [still, before] = [0, window.shifted];
    await new Promise((drawn) => requestAnimationFrame(drawn));
  }
  return window.shifted;
}
"""
# The moment at which everything that was parsed is drawn, pictures and all.
READY = """
async () => {
  const whole = performance.getEntriesByType("navigation")[0];
  const painted = performance.getEntriesByName("first-contentful-paint")[0];
  const chart = document.querySelector("figure.chart svg");
  if (chart && chart.getBoundingClientRect().height === 0) throw new Error("a chart is not visible");
  return Math.max(whole.domContentLoadedEventEnd, painted.startTime) / 1000;
}
"""


def shift_of(page: Page, address: str) -> float:
    """Return how far a page moves as it loads; its scripts are `SHIFT`'s beside its own."""
    page.goto(address, wait_until="networkidle")
    return float(page.evaluate(STILL))


def slowed(page: Page, processor: int, bits_a_second: float, latency_ms: int) -> CDPSession:
    """Slow a page's processor and network down."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": processor})
    session.send("Network.enable")
    rate = bits_a_second / 8
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": latency_ms, "downloadThroughput": rate, "uploadThroughput": rate},
    )
    return session


def ready_after(page: Page, address: str) -> float:
    """Return the seconds until a page is there with its charts."""
    page.goto(address, wait_until="load")
    return float(page.evaluate(READY))
