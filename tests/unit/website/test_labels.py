"""Every mark of every page says what the registers give, in its sentence and in the rows that it carries."""

from collections import Counter

import pytest

from tests.unit.website.labels import Figure, check_sentence, figures, shown, table
from tests.unit.website.reading import rendered
from tests.unit.website.registered import Expected, expected
from toolkit import api
from toolkit.places import Home
from toolkit.study.probing.report import report
from toolkit.website.material import Material
from toolkit.website.paper import read_paper
from toolkit.website.render import all_pages

Shown = list[tuple[str, list[Figure], Expected]]
"""Name of a page, its figures, and what they should show."""
SLOW = ("bfcl", "coupled", "map")
STUDIES = (
    "published",
    "tiny-lm",
    "small-lm",
    "embedded",
    *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW),
)


def pages_of(home: Home, name: str) -> Shown:
    """Return every page of a site that holds one study alone."""
    (case,) = api.load_cases((name,), home)
    figures_of = report(case.study).figures.values() if case.study.has("probe") else ()
    probed = {name: [row for rows in figures_of for row in rows]}
    material = Material((case,), (case.study,), paper=read_paper(home.cards), probe_figures=probed)
    pages = list(all_pages(material))
    names = {page.name for page in pages}
    read = []
    for page in pages:
        drawn = list(figures(rendered(page, names, drawn=True)))
        read.append((page.name, drawn, expected(case, page, drawn)))
    return read


def kind_of(figure: Figure) -> str:
    return f"step {figure.columns[1]}" if figure.columns[0] == "step" else figure.kind


def check(read: Shown) -> Counter[str]:
    """Check the marks of pages, and return how many there are of each kind."""
    counted: Counter[str] = Counter()
    for page, drawn, registered in read:
        found = sorted((kind_of(figure), rows) for figure in drawn for rows in shown(figure))
        assert found == sorted((kind, table(rows)) for kind, rows in registered), page
        for figure in drawn:
            for mark in (mark for drawing in figure.drawings for mark in drawing):
                check_sentence(figure, mark)
                counted[figure.kind] += 1
    return counted


@pytest.mark.parametrize("name", STUDIES)
def test_every_mark_says_what_the_registers_give(
    name: str, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = check(pages_of(home, name))
    with capsys.disabled():
        print(f"\n{name}: {counted.total()} marks: {dict(counted)}")
    assert {"set", "member", "rule", "arm", "lane"} <= counted.keys() or name in SLOW
