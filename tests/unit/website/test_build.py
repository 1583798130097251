"""Writing a site: cut off at any moment, it can be written again, and nothing else is removed."""

from pathlib import Path

import pytest

from tests.conftest import snapshot
from toolkit.files import write_all
from toolkit.website import build
from toolkit.website.build import MARK, write_site
from toolkit.website.checking import check_budgets

CONTENT = {MARK: b"index.html\n", "index.html": b"<p>"}


def test_a_first_build_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"

    def killed(folder: Path, contents: dict[str, bytes]) -> None:
        if "index.html" in contents:
            (folder / ".index.html.1.part").write_bytes(b"half")
            raise SystemExit
        write_all(folder, contents)

    monkeypatch.setattr(build, "write_all", killed)
    with pytest.raises(SystemExit):
        write_site(site, CONTENT)
    monkeypatch.setattr(build, "write_all", write_all)
    write_site(site, CONTENT)
    assert (site / "index.html").read_bytes() == b"<p>"


@pytest.mark.parametrize("line", ["", "kept", "../out.txt", "absent/x", "index.html/x"])
def test_a_mark_that_names_no_page_removes_nothing(tmp_path: Path, line: str) -> None:
    site = tmp_path / "site"
    write_site(site, CONTENT)
    (tmp_path / "out.txt").write_text("mine")
    (site / "kept").mkdir()
    (site / "kept" / "x.txt").write_text("mine")
    (site / MARK).write_text(f"index.html\n{line}\n")
    before = snapshot(tmp_path)
    write_site(site, CONTENT)
    assert snapshot(tmp_path) == {**before, f"site/{MARK}": CONTENT[MARK]}


def test_a_page_that_is_no_text_is_weighed_all_the_same() -> None:
    assert list(check_budgets({"index.html": b"\xf0\x28"})) == []
