"""The site: how long building it takes, how large it is, and how soon a page is there on a slow phone.

It is built of a copy of the checkout's home, from nothing and unchanged, and of a home of one study of a
thousand runs, nearly. Pages are those of the checkout's `site/`, opened in a browser whose processor and
network are slowed down.
"""

import json
import shutil
import statistics
import tempfile
from collections.abc import Iterable
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.benchmarks.harness import TOOLKIT, run, verdict
from tests.browser.conftest import DEBIAN
from tests.browser.site import MOST_SHIFT, SHIFT, Served, ready_after, served, shift_of, slowed
from tests.conftest import CHECKOUT
from tests.unit.site.sizes import GOALS, sizes

FROM_NOTHING_S, UNCHANGED_S, THOUSAND_S = 25.0, 5.0, 120.0
LARGE = "map"
ROUNDS = 5
SLOWER, BITS_A_SECOND, LATENCY_MS = 4, 1.6e6, 40
GOAL_S = 1.5


def home_of(home: Path, studies: Iterable[str]) -> Path:
    """Make a home with some of the checkout's studies, and return it."""
    for name in (*(f"registers/{study}" for study in studies), "prereg", "cards"):
        shutil.copytree(CHECKOUT / name, home / name)
    return home


def told(what: str, home: Path, goal: float) -> None:
    """Build the site of a home, and print how long it took."""
    used = run(*TOOLKIT, "site", "build", "--json", TOOLKIT_HOME=str(home))
    document = json.loads(used.printed)
    rendered = "rendered" if document["rendered"] else "nothing rendered"
    met = verdict(used.wall < goal, f"under {goal:g} s")
    print(f"  {what:24} {used.wall:7.2f} s, {document['pages']} files, {rendered}  {met}")


def loaded(browser: Browser, site: Served) -> None:
    """Load run pages as on a slow phone, and print when they are there, and what of any page moves."""
    runs = [name for name in site.names if "/runs/" in name]
    largest = max(runs, key=lambda name: (site.folder / name).stat().st_size)
    print(f"a run's page, processor {SLOWER} times slowed, {BITS_A_SECOND / 1e6:g} Mbit/s, {ROUNDS} rounds")
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
    shift, worst = max((shift_of(page, site.url(name)), kind) for kind, name in site.kinds().items())
    print(
        f"most moves as it loads: {worst}, {shift:.3f}  {verdict(shift < MOST_SHIFT, f'below {MOST_SHIFT}')}"
    )


def compare(folder: Path = CHECKOUT / "site") -> None:
    """Measure in fresh homes, then in a browser."""
    print("the site, built in a process of its own")
    with tempfile.TemporaryDirectory() as scratch:
        names = sorted(path.name for path in (CHECKOUT / "registers").iterdir() if path.is_dir())
        whole = home_of(Path(scratch) / "whole", names)
        told("from nothing", whole, FROM_NOTHING_S)
        told("unchanged", whole, UNCHANGED_S)
        runs = list((CHECKOUT / "registers" / LARGE / "episodes").iterdir())
        told(f"{len(runs)} runs, from nothing", home_of(Path(scratch) / "large", [LARGE]), THOUSAND_S)
    for what, size in sizes(folder).items():
        print(f"{what:26} {size:>12,} bytes  {verdict(size <= GOALS[what], f'at most {GOALS[what]:,}')}")
    with served(folder) as site, sync_playwright() as playwright:
        chromium = shutil.which("chromium") or DEBIAN
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        loaded(browser, site)
        browser.close()
