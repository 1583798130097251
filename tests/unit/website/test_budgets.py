"""What a reader may have to wait for."""

import gzip
import random

from toolkit.website.checking import check_budgets, sent


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


def packed(*names: str) -> int:
    return sum(len(gzip.compress(FILES[name], 6)) for name in names)


def test_without_scripts_a_page_and_its_style_sheet_count() -> None:
    assert sent(FILES, "index.html", scripts=False) == packed("index.html", "style.css")


def test_with_scripts_those_count_that_scripts_load() -> None:
    counted = packed("index.html", "style.css", "site.js", "charts.js")
    assert sent(FILES, "index.html", scripts=True) == counted


def test_a_small_site_is_within_its_budgets() -> None:
    assert list(check_budgets(FILES)) == []


def test_a_heavy_style_sheet_is_over_both_budgets_of_the_front_page() -> None:
    findings = list(check_budgets({**FILES, "style.css": noise(1_000_000)}))
    assert [finding.file for finding in findings] == ["index.html", "index.html"]
    assert "without scripts, under 150,000" in findings[0].what
    assert "with scripts, under 500,000" in findings[1].what


def test_a_heavy_script_is_over_the_second_budget_alone() -> None:
    (finding,) = check_budgets({**FILES, "charts.js": noise(1_200_000)})
    assert "with scripts, under 500,000" in finding.what


def test_a_page_of_a_million_and_a_half_bytes_is_too_large() -> None:
    assert list(check_budgets({**FILES, "a/b.html": b"x" * 1_499_999})) == []
    (finding,) = check_budgets({**FILES, "a/b.html": b"x" * 1_500_000})
    assert str(finding) == "a/b.html: over budget: 1,500,000 bytes, under 1,500,000"
