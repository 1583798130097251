"""`toolkit site`: the build, the zip, the checks, and the server, as commands."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests import printed
from tests.conftest import CHECKOUT, Toolkit, run, snapshot
from toolkit.cases import load_cases
from toolkit.places import HOME_VARIABLE, Home
from toolkit.site import build
from toolkit.site.build import RECORD, inputs_of
from toolkit.site.commands import material as site_material
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.pages import data, home, registration, rule, study

BUILT = ("site", "build", "--out")
material_of = site_material.material


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the smallest study that has runs: its site is built in a moment."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("registers/published", "prereg/paired-rollouts"):
        shutil.copytree(CHECKOUT / name, folder / name)
    return folder


@pytest.fixture(autouse=True)
def at_home(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(small))


@pytest.fixture(scope="module", autouse=True)
def made_once() -> Iterator[None]:
    """The site of the one home has few pages and no drawn chart; they are made once."""

    def kept(maker: ModuleType) -> SimpleNamespace:
        made: list[Page] = []
        return SimpleNamespace(pages=lambda material: made or made.extend(maker.pages(material)) or made)

    gathered = cache(material_of)

    def material(where: Home, **_: object) -> Material:
        return gathered(where)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_material, "material", material)
        patch.setattr(build, "MAKERS", tuple(map(kept, (home, rule, registration, study, data))))
        patch.setattr(rule, "rule_charts", lambda *_: ())
        yield


@pytest.fixture(scope="module")
def once(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("built") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(small))
        result = run(*BUILT, site)
        assert result.code == 0, result.err
    return site


@pytest.fixture
def site(once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(once, tmp_path / "site")


def test_an_unchanged_site_is_not_rendered_and_a_damaged_file_is_mended(toolkit, site) -> None:
    before = snapshot(site)
    again = toolkit(*BUILT, site, "--json").json()
    assert (again["rendered"], again["changed"]) == (False, [])
    assert again["pages"] == len(before) - 1  # the record is none of the site's
    assert snapshot(site) == before
    (site / "data.html").write_bytes(b"damaged")
    mended = toolkit(*BUILT, site, "--json").json()
    assert (mended["rendered"], mended["changed"]) == (True, ["data.html"])
    assert snapshot(site) == before


@pytest.mark.parametrize(
    "changed", ["registers/published/README.md", "prereg/new.txt", "cards/site.toml", "CITATION.cff"]
)
def test_whatever_a_site_is_made_of_changes_it_is_rendered(small: Path, changed: str) -> None:
    home = Home(small)
    before = inputs_of(home)
    path = small / changed
    old = path.read_bytes() if path.is_file() else None
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((old or b"") + b" ")
    try:
        assert inputs_of(home) != before
    finally:
        path.unlink() if old is None else path.write_bytes(old)
    assert inputs_of(home) == before


def test_a_zip_that_cannot_be_written_is_refused_before_anything_is_built(toolkit, tmp_path) -> None:
    assert toolkit(*BUILT, tmp_path / "site", "--zip", "no/a.zip").code == 3
    assert not (tmp_path / "site").exists()


def test_a_built_site_has_no_findings_and_each_is_a_line_and_a_document(toolkit: Toolkit, site: Path) -> None:
    check = ("site", "check", "--folder", site)
    result = toolkit(*check, "--json")
    assert (result.code, result.json()["findings"]) == (0, [])
    page = site / "published" / "H3.html"
    whole = page.read_text(encoding="utf-8")
    page.write_text(whole.replace("</main>", "<script>x()</script></main>"), encoding="utf-8")
    result = toolkit(*check, "--json")
    assert (result.code, result.json()["identical"]) == (1, False)
    findings = {(f["file"], f["kind"]) for f in result.json()["findings"]}
    assert findings == {("published/H3.html", "differs"), ("published/H3.html", "markup")}
    page.unlink()
    (site / "stray.html").write_text("<p>stray</p>")
    result = toolkit(*check)
    assert result.code == 1
    assert {
        "published/H3.html: absent: the registers give it",
        "stray.html: unexpected: the registers do not give it",
        "index.html: broken link: published/H3.html",
    } <= set(result.out.splitlines())


def test_two_zips_of_one_site_are_the_same_and_hold_all_of_it(toolkit, site, tmp_path) -> None:
    for name in ("a.zip", "b.zip"):
        assert toolkit(*BUILT, site, "--zip", tmp_path / name).code == 0
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        packed.extractall(tmp_path / "unpacked")
    whole = {name: content for name, content in snapshot(site).items() if name != RECORD}
    assert snapshot(tmp_path / "unpacked" / "site") == whole


def test_a_zip_never_takes_the_place_of_a_page(toolkit: Toolkit, site: Path) -> None:
    before = snapshot(site)
    toolkit(*BUILT, site, "--zip", site / "index.html").refused(2, "cannot lie in the site")
    assert snapshot(site) == before


def test_an_interrupt_ends_serving_without_a_word(site: Path) -> None:
    command = [sys.executable, "-m", "toolkit", "site", "serve", "--port", "0", "--base", "/x/", "--json"]
    with subprocess.Popen(
        [*command, "--folder", str(site)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # A shell that runs this in the background would have it ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as process:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += process.stdout.readline()
        document = json.loads(text)
        printed.check("site serve", document)
        address = document["address"]
        with urllib.request.urlopen(address, timeout=10) as response:  # noqa: S310 - this machine's
            assert b"<!doctype html>" in response.read()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (0, "")


def test_what_was_verified_is_shown_as_it_was_hashed_and_not_verified_again(small, monkeypatch) -> None:
    def again(*_: object) -> None:
        pytest.fail("verified again")

    monkeypatch.setattr("toolkit.registrations.verify_frozen", again)
    assert material_of(Home(small), ()).verifications == ()
    monkeypatch.setattr(site_material, "check_study", again)
    cases = load_cases((), Home(small))
    shown = material_of(Home(small), (), cases)
    assert [id(case) for case in shown.cases] == [id(case) for case in cases]
    assert [id(study) for study in shown.studies] == [id(case.study) for case in cases]


def test_a_site_build_removes_nothing_that_it_did_not_write(toolkit, site, tmp_path) -> None:
    (site / ".git").mkdir()
    (site / ".git" / "HEAD").write_text("ref")
    (site / "data.txt").write_text("important")
    (site / "stale.html").write_text("old")
    mark = site / ".toolkit-site"
    mark.write_text(mark.read_text() + "stale.html\n../outside.txt\n")
    (tmp_path / "outside.txt").write_text("mine")
    assert toolkit(*BUILT, site).code == 0
    assert not (site / "stale.html").exists()
    for kept in (site / ".git" / "HEAD", site / "data.txt", tmp_path / "outside.txt"):
        assert kept.exists()


def test_a_site_is_built_in_a_folder_that_holds_nothing_else(toolkit: Toolkit, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    toolkit(*BUILT, tmp_path).refused(3, "something else")
    for path in (tmp_path / "thesis.tex", tmp_path / "thesis.tex" / "site"):
        toolkit(*BUILT, path).refused(3, "needs a folder")
    assert snapshot(tmp_path) == {"thesis.tex": b"years of work"}
