"""One browser and one served site for all tests in the browser; both end with them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.site import OpenPage, Served, Watch, served
from tests.conftest import CHECKOUT

DEBIAN = "/usr/bin/chromium"
ARTEFACTS = "TOOLKIT_ARTEFACTS"


# As long as tests of this folder run: the loop that the browser is spoken with would be in the way of others.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or DEBIAN
    if not Path(path).exists():
        absent = pytest.fail if os.environ.get("CI") else pytest.skip
        absent("the tests in the browser need Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        # Its sandbox needs rights that containers do not give; it opens this project's pages alone.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def site() -> Iterator[Served]:
    """Return the shipped site; another test proves that it is what a build gives."""
    with served(CHECKOUT / "site") as whole:
        yield whole


@pytest.fixture(scope="package")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of pictures, which people look at."""
    folder = Path(os.environ.get(ARTEFACTS) or tmp_path_factory.mktemp("pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    contexts: list[BrowserContext] = []

    def opened(width: int = 1280, height: int = 900, **options: object) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        return context.new_page()

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(params=["served", "from a folder"])
def root(site: Served, request: pytest.FixtureRequest) -> str:
    """Return where the site's front page lies, with a slash at the end: on a server, or in a folder."""
    return site.address if request.param == "served" else site.folder.as_uri() + "/"


@pytest.fixture
def watch(site: Served) -> Watch:
    return Watch(site.address)
