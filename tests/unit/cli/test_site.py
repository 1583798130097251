"""`toolkit site`: frozen versions, the zip, the checks, and the server, as commands."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Toolkit, run, snapshot
from toolkit.places import HOME_VARIABLE
from toolkit.website import build
from toolkit.website.material import Material


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the smallest study that has runs: its site is built in a moment."""
    home = tmp_path_factory.mktemp("home")
    for name in ("registers/published", "prereg/paired-rollouts"):
        shutil.copytree(CHECKOUT / name, home / name)
    return home


@pytest.fixture(autouse=True)
def at_home(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(small))


@pytest.fixture(scope="module", autouse=True)
def rendered_once() -> Iterator[None]:
    """Pages of the one home depend on the frozen versions alone: those of each state are made once."""
    real, kept = build.render, {}

    def rendered(everything: Material, progress: Callable[[str], None], frozen: str = "") -> dict[str, str]:
        state = repr((everything.versions, frozen))
        if state not in kept:
            kept[state] = real(everything, progress, frozen)
        return dict(kept[state])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "render", rendered)
        yield


@pytest.fixture(scope="module")
def once(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a site with two frozen versions."""
    site = tmp_path_factory.mktemp("built") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(small))
        for name in ("v1.0.0", "v1.1.0"):
            result = run("site", "build", "--out", site, "--freeze", name)
            assert result.code == 0, result.err
    return site


@pytest.fixture
def site(once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(once, tmp_path / "site")


@pytest.mark.slow
def test_a_frozen_page_says_that_it_is_one_and_names_the_current_page(site: Path) -> None:
    text = (site / "v1.0.0" / "published" / "H2a.html").read_text(encoding="utf-8")
    assert "Frozen version v1.0.0" in text
    assert 'href="../../published/H2a.html"' in text
    assert 'href="../../versions.html"' in text


def test_a_current_page_does_not_say_that_it_is_frozen(site: Path) -> None:
    assert "Frozen version v" not in (site / "published" / "H2a.html").read_text(encoding="utf-8")


def test_versions_are_listed_on_a_page_that_every_page_names(site: Path) -> None:
    text = (site / "versions.html").read_text(encoding="utf-8")
    assert text.index('href="v1.1.0/index.html"') < text.index('href="v1.0.0/index.html"')
    assert 'href="../versions.html"' in (site / "published" / "H2a.html").read_text(encoding="utf-8")


def test_a_later_build_leaves_what_was_frozen(toolkit: Toolkit, site: Path) -> None:
    before = snapshot(site)
    assert toolkit("site", "build", "--out", site).code == 0
    assert snapshot(site) == before


def test_a_site_without_versions_lists_none(toolkit: Toolkit, tmp_path: Path) -> None:
    assert toolkit("site", "build", "--out", tmp_path / "site").code == 0
    assert not (tmp_path / "site" / "versions.html").exists()
    assert "versions.html" not in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_without_a_name_the_version_is_the_toolkits(toolkit: Toolkit, tmp_path: Path) -> None:
    import toolkit as package

    document = toolkit("site", "build", "--out", tmp_path / "site", "--freeze", "--json").json()
    assert document["frozen"]["version"] == f"v{package.__version__}"
    assert (tmp_path / "site" / f"v{package.__version__}" / "index.html").is_file()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "index.html.", " v1"])
def test_a_name_that_is_no_folders_is_refused_before_anything_is_built(
    toolkit: Toolkit, tmp_path: Path, name: str
) -> None:
    assert toolkit("site", "build", "--out", tmp_path / "site", "--freeze", name).code == 2
    assert not (tmp_path / "site").exists()


def test_freezing_under_a_name_with_other_bytes_is_refused(toolkit: Toolkit, site: Path) -> None:
    (listed,) = [site / "v1.0.0" / "FROZEN.sha256"]
    listed.write_text(listed.read_text().replace("  index.html", "  other.html"))
    result = toolkit("site", "build", "--out", site, "--freeze", "v1.0.0")
    assert result.code == 1
    assert "2 files differ: index.html, other.html" in result.err


def test_a_version_cannot_take_a_studys_place(toolkit: Toolkit, site: Path) -> None:
    assert toolkit("site", "build", "--out", site, "--freeze", "published").code == 2


def test_a_page_that_only_frozen_versions_have_says_where_it_stands(toolkit: Toolkit, site: Path) -> None:
    folder = site / "v1.0.0"
    (folder / "published" / "old.html").write_text("<p>old</p>")
    listed = (folder / "FROZEN.sha256").read_text().splitlines()
    lines = sorted([*listed, f"{'0' * 64}  published/old.html"], key=lambda line: line.split("  ")[1])
    (folder / "FROZEN.sha256").write_text("".join(f"{line}\n" for line in lines))
    assert toolkit("site", "build", "--out", site).code == 0
    text = (site / "published" / "old.html").read_text(encoding="utf-8")
    assert 'href="../v1.0.0/published/old.html"' in text


def test_a_built_site_has_no_findings(toolkit: Toolkit, site: Path) -> None:
    result = toolkit("site", "check", "--folder", site, "--json")
    assert (result.code, result.json()["findings"]) == (0, [])
    assert result.json()["frozen"] == ["v1.1.0", "v1.0.0"]


def test_a_finding_is_a_line(toolkit: Toolkit, site: Path) -> None:
    (site / "v1.0.0" / "index.html").write_text("changed")
    (site / "published" / "H3.html").unlink()
    (site / "stray.html").write_text("<p>stray</p>")
    (site / "v1.0.0" / "stray.html").write_text("<p>stray</p>")
    result = toolkit("site", "check", "--folder", site)
    assert result.code == 1
    lines = result.out.splitlines()
    assert "v1.0.0/index.html: differs: it is not what FROZEN.sha256 lists" in lines
    assert "published/H3.html: absent: the registers give it" in lines
    assert [line for line in lines if "stray" in line] == [
        "stray.html: unexpected: the registers do not give it",
        "v1.0.0/stray.html: unexpected: FROZEN.sha256 does not list it",
    ]
    assert "index.html: broken link: published/H3.html" in lines


def test_findings_come_as_json_with_exit_code_1(toolkit: Toolkit, site: Path) -> None:
    page = site / "published" / "H3.html"
    page.write_text(page.read_text(encoding="utf-8").replace("</main>", "<script>x()</script></main>"))
    result = toolkit("site", "check", "--folder", site, "--json")
    assert result.code == 1
    assert result.json()["identical"] is False
    assert {(f["file"], f["kind"]) for f in result.json()["findings"]} == {
        ("published/H3.html", "differs"),
        ("published/H3.html", "markup"),
    }


def test_two_zips_of_one_site_are_the_same_and_hold_all_of_it(
    toolkit: Toolkit, site: Path, tmp_path: Path
) -> None:
    for name in ("a.zip", "b.zip"):
        assert toolkit("site", "build", "--out", site, "--zip", tmp_path / name).code == 0
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        packed.extractall(tmp_path / "unpacked")
    assert snapshot(tmp_path / "unpacked" / "site") == snapshot(site)


def test_a_frozen_page_that_was_changed_enters_no_zip(toolkit: Toolkit, site: Path, tmp_path: Path) -> None:
    (site / "v1.0.0" / "index.html").write_text("forged")
    result = toolkit("site", "build", "--out", site, "--zip", tmp_path / "a.zip")
    assert result.code == 1
    assert "v1.0.0/index.html differs" in result.err
    assert not (tmp_path / "a.zip").exists()


def test_a_zip_that_cannot_be_written_is_refused_before_the_site_is_built(
    toolkit: Toolkit, tmp_path: Path
) -> None:
    result = toolkit("site", "build", "--out", tmp_path / "site", "--zip", tmp_path / "no" / "a.zip")
    assert result.code == 3
    assert not (tmp_path / "site").exists()


def test_a_zip_never_takes_the_place_of_a_page(toolkit: Toolkit, site: Path) -> None:
    before = snapshot(site)
    result = toolkit("site", "build", "--out", site, "--zip", site / "index.html")
    assert result.code == 2
    assert "cannot lie in the site" in result.err
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
        address = json.loads(text)["address"]
        with urllib.request.urlopen(address, timeout=10) as response:  # noqa: S310 - this machine's
            assert b"<!doctype html>" in response.read()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (0, "")


def test_a_port_that_is_taken_is_wrong_usage(toolkit: Toolkit, site: Path) -> None:
    from toolkit.website.server import SiteServer

    taken = SiteServer(site, 0)
    result = toolkit("site", "serve", "--folder", site, "--port", taken.server_port)
    taken.server_close()
    assert result.code == 2
    assert "cannot be had" in result.err


def test_a_folder_without_a_site_is_not_served(toolkit: Toolkit, tmp_path: Path) -> None:
    assert toolkit("site", "serve", "--folder", tmp_path).code == 3


def test_registrations_that_were_verified_are_not_verified_again(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolkit.cli import site_material as command
    from toolkit.places import Home

    def again(*_: object) -> None:
        pytest.fail("verified again")

    monkeypatch.setattr("toolkit.api.verify_frozen", again)
    assert command.material(Home(small), tmp_path, ()).verifications == ()


def test_a_site_build_removes_nothing_that_it_did_not_write(toolkit: Toolkit, tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert toolkit("site", "build", "--out", site).code == 0
    (site / ".git").mkdir()
    (site / ".git" / "HEAD").write_text("ref")
    (site / "data.txt").write_text("important")
    (site / "stale.html").write_text("old")
    mark = site / ".toolkit-site"
    mark.write_text(mark.read_text() + "stale.html\n../outside.txt\n")
    (tmp_path / "outside.txt").write_text("mine")
    assert toolkit("site", "build", "--out", site).code == 0
    assert (site / ".git" / "HEAD").exists()
    assert (site / "data.txt").exists()
    assert (tmp_path / "outside.txt").exists()
    assert not (site / "stale.html").exists()


def test_a_site_build_that_was_cut_off_goes_on(
    toolkit: Toolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, done = Path.replace, []

    def power_cut(self: Path, target: Path) -> Path:
        done.append(target)
        if len(done) == 3:
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", power_cut)
        assert toolkit("site", "build", "--out", tmp_path / "site").code == 130
    assert toolkit("site", "build", "--out", tmp_path / "site").code == 0
    assert toolkit("site", "check", "--folder", tmp_path / "site").code == 0
