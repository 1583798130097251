"""The page of a registration, opened from a folder: it verifies its tokens and knows its own files."""

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import OpenPage, Watch
from tests.conftest import CHECKOUT
from tests.unit.site.reading import pages_of
from toolkit.prereg.registration import load_registration
from toolkit.site.build import _assets
from toolkit.site.material import Material
from toolkit.site.pages import registration as maker
from toolkit.site.registers import frozen_file_content

SCRIPT = "data/registrations/embedded.js"
FORGED = "evidence/freeze.demonstration-a.tsr"


@pytest.fixture(scope="module")
def content() -> dict[str, bytes]:
    """Return a site of registrations alone."""
    names = ("embedded", "paired-rollouts")
    registrations = tuple(load_registration(CHECKOUT / "prereg" / name) for name in names)
    material = Material((), registrations=registrations)
    pages = {name: text.encode() for name, text in pages_of(material, maker).items()}
    return {**pages, **frozen_file_content(material), **_assets(material)}


def opened(open_page: OpenPage, folder: Path, files: dict[str, bytes], name: str = "embedded") -> Page:
    for file, held in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(held)
    page = open_page()
    page.goto((folder / f"registrations/{name}.html").as_uri())
    return page


def test_opening_a_page_verifies_every_token(open_page, tmp_path, content) -> None:
    page = open_page()
    watch = Watch(tmp_path.as_uri()).on(page)
    opened(lambda: page, tmp_path, content)
    expect(page.locator(".tokens > [role=status]")).to_contain_text("8 of 8 tokens")
    expect(page.locator(".ticks .verdict.good")).to_have_count(8)
    expect(page.locator(".unchecked")).to_contain_text("Not checked here: revocation")
    assert watch.wrong == []


def test_a_forged_token_is_caught_by_opening_the_page(open_page, tmp_path, content) -> None:
    token = (CHECKOUT / "prereg/embedded" / FORGED).read_bytes()
    forged = token[:-1] + bytes([token[-1] ^ 1])
    script = content[SCRIPT].replace(base64.b64encode(token), base64.b64encode(forged))
    assert script != content[SCRIPT]
    page = opened(open_page, tmp_path, content | {SCRIPT: script})
    expect(page.locator(".ticks li").first).to_contain_text("its signature does not match")
    expect(page.locator(".ticks .verdict.bad")).to_have_count(1)


def test_without_scripts_the_page_says_what_the_build_found_and_asks_for_no_file(
    open_page: OpenPage, tmp_path: Path, content: dict[str, bytes]
) -> None:
    page = opened(lambda: open_page(java_script_enabled=False), tmp_path, content)
    expect(page.locator(".tokens > [role=status]")).to_contain_text("found when this page was built")
    expect(page.locator(".holding")).to_be_hidden()


DROP = """([name, text]) => {
  const held = new DataTransfer();
  held.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
  document.dispatchEvent(new DragEvent("drop", { dataTransfer: held, cancelable: true }));
}"""


def test_a_file_that_is_dropped_or_chosen_is_known_or_not(open_page, tmp_path, content) -> None:
    page = opened(open_page, tmp_path, content)
    rules = content["registrations/embedded/rules.toml"]
    known = " is, byte for byte, rules.toml of this registration"
    for is_dropped, name, held, said in (
        (True, "copy.toml", rules, f"copy.toml{known}"),
        (False, "chosen.toml", rules, f"chosen.toml{known}"),
        (True, "rules.toml", rules + b"\n", "rules.toml is not the registered rules.toml"),
        (False, "<b>else", b"else", "<b>else is none of the 36 registered files"),
    ):
        if is_dropped:
            page.evaluate(DROP, [name, base64.b64encode(held).decode()])
        else:
            (tmp_path / name).write_bytes(held)
            page.locator(".holding input").set_input_files(tmp_path / name)
        expect(page.locator(".holding [role=status]")).to_contain_text(said)
