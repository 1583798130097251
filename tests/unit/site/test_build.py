"""A site as files: written again wherever it was cut off, zipped to the same bytes, within its budgets."""

import gzip
import io
import random
import zipfile
from pathlib import Path

import pytest

from tests.conftest import snapshot
from toolkit.errors import UsageError
from toolkit.files import write_all
from toolkit.registers.study import Study
from toolkit.site import build
from toolkit.site.build import MARK, archive, write_site
from toolkit.site.checking import check_budgets, sent
from toolkit.site.material import Material
from toolkit.site.page import luck_page, probe_page, rule_page, study_page
from toolkit.site.pages import data

CONTENT = {MARK: b"index.html\n", "index.html": b"<p>"}


def noise(size: int) -> bytes:
    """Return bytes that no packing makes smaller, as a script's text."""
    return random.Random(0).randbytes(size // 2).hex().encode()  # noqa: S311 - the same ones each time


PAGE = b'<html><link rel="stylesheet" href="style.css"><script src="site.js" defer></script></html>'
FILES = {
    "index.html": PAGE,
    "style.css": b"p {}" * 100,
    "site.js": b'load("charts.js")',
    "charts.js": b"more()" * 200,
    "unused.js": noise(2_000_000),
}


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


def test_everything_lies_below_one_folder_and_neither_order_time_nor_machine_enters() -> None:
    assert archive(FILES) == archive(dict(reversed(FILES.items())))
    with zipfile.ZipFile(io.BytesIO(archive(FILES))) as packed:
        assert packed.testzip() is None
        assert {name: packed.read(name) for name in packed.namelist()} == {
            f"site/{name}": content for name, content in FILES.items()
        }
        for entry in packed.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert (entry.create_system, entry.external_attr >> 16) == (3, 0o100644)


@pytest.mark.parametrize(
    ("scripts", "names"),
    [(False, ("index.html", "style.css")), (True, ("index.html", "style.css", "site.js", "charts.js"))],
)
def test_a_page_its_style_sheet_and_the_scripts_that_scripts_load_count(scripts, names) -> None:
    assert sent(FILES, "index.html", scripts=scripts) == sum(
        len(gzip.compress(FILES[name], 6)) for name in names
    )


OVER = ("without scripts, under 150,000", "with scripts, under 500,000")


@pytest.mark.parametrize(
    ("heavy", "over"),
    [
        ({"index.html": b"\xf0\x28"}, ()),  # no text, and weighed all the same
        ({"style.css": noise(1_000_000)}, OVER),
        ({"charts.js": noise(1_200_000)}, OVER[1:]),
    ],
    ids=["none", "style sheet", "script"],
)
def test_the_front_page_is_held_to_both_its_budgets(heavy: dict[str, bytes], over: tuple[str, ...]) -> None:
    findings = list(check_budgets({**FILES, **heavy}))
    assert [(f.file, f.what.partition("gzipped ")[2]) for f in findings] == [("index.html", o) for o in over]


def test_a_page_of_a_million_and_a_half_bytes_is_too_large() -> None:
    assert list(check_budgets({**FILES, "a/b.html": b"x" * 1_499_999})) == []
    (finding,) = check_budgets({**FILES, "a/b.html": b"x" * 1_500_000})
    assert str(finding) == "a/b.html: over budget: 1,500,000 bytes, under 1,500,000"


@pytest.mark.parametrize("rule", ["index", "probe", "luck", "Index", "LUCK"])
def test_a_rule_takes_the_name_of_no_other_page(rule: str) -> None:
    others = {study_page("s"), probe_page("s"), luck_page("s")}
    assert rule_page("s", rule).casefold() not in others
    assert rule_page("s", "H1") == "s/H1.html"


def test_a_page_never_takes_the_place_of_another(monkeypatch: pytest.MonkeyPatch, published: Study) -> None:
    monkeypatch.setattr(build, "MAKERS", (data, data))
    with pytest.raises(UsageError, match="one name"):
        build.render(Material((), (published,)), lambda _: None)
