"""How a page loads for a reader: when it is ready, and what of it moves."""

from playwright.sync_api import CDPSession, Page

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
