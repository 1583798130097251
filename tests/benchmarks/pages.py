"""How soon a run's page is there for a reader with a slow phone, and how large the site is.

The pages are those of the checkout's `site/`. Times are those of the machine at hand, whose processor
the browser slows down.
"""

import shutil
import statistics
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.benchmarks.timing import verdict
from tests.browser.conftest import DEBIAN
from tests.browser.site import served
from tests.browser.speed import MOST_SHIFT, SHIFT, ready_after, shift_of, slowed
from tests.conftest import CHECKOUT
from tests.unit.site.sizes import GOALS, sizes

ROUNDS = 5
SLOWER, BITS_A_SECOND, LATENCY_MS = 4, 1.6e6, 40
GOAL_S = 1.5


def compare(folder: Path = CHECKOUT / "site") -> None:
    """Measure and print a line a page, and one a size."""
    for what, size in sizes(folder).items():
        print(f"{what:26} {size:>12,} bytes  {verdict(size <= GOALS[what], f'at most {GOALS[what]:,}')}")
    with served(folder) as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or DEBIAN, args=["--no-sandbox"]
        )
        runs = [name for name in site.names if "/runs/" in name]
        largest = max(runs, key=lambda name: (folder / name).stat().st_size)
        print(
            f"a run's page, processor {SLOWER} times slowed, {BITS_A_SECOND / 1e6:g} Mbit/s, {ROUNDS} rounds"
        )
        for name in (runs[0], largest):
            seconds = []
            for _ in range(ROUNDS):
                page = browser.new_context().new_page()  # with nothing kept of the round before
                slowed(page, SLOWER, BITS_A_SECOND, LATENCY_MS)
                seconds.append(ready_after(page, site.url(name)))
                page.context.close()
            median = statistics.median(seconds)
            print(f"  {name:50} {median:6.2f} s  {verdict(median <= GOAL_S, f'at most {GOAL_S} s')}")
        page = browser.new_page()
        page.add_init_script(SHIFT)
        moved = {kind: shift_of(page, site.url(name)) for kind, name in site.kinds().items()}
        worst = max(moved, key=moved.__getitem__)
        goal = verdict(moved[worst] < MOST_SHIFT, f"below {MOST_SHIFT}")
        print(f"what moves most as it loads: {worst}, {moved[worst]:.3f}  {goal}")
        browser.close()


if __name__ == "__main__":
    compare()
