"""Every mark of every page says what the registers give, in its sentence and in the rows that it carries."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.site.conftest import opened
from tests.unit.site.labels import Figure, check_sentence, figures, shown, table
from tests.unit.site.reading import rendered
from tests.unit.site.registered import Expected, expected
from toolkit.decisions.case import Case
from toolkit.lab.probing.report import report
from toolkit.places import Home
from toolkit.site.exhibits import load_exhibits
from toolkit.site.front import read_front
from toolkit.site.material import Material
from toolkit.site.pages import run
from toolkit.site.render import all_pages

Shown = tuple[str, list[Figure], Expected]
"""Name of a page, its figures, and what they should show."""
QUICK, SLOW = ("published", "tiny-lm"), ("small-lm", "embedded", "bfcl", "coupled", "map")
STUDIES = (*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW))


def pages_of(home: Home, name: str) -> Iterable[Shown]:
    """Yield every page of a site that holds one study alone."""
    case = opened(name)
    figures_of = report(case.study).figures if case.study.has("probe") else {}
    probed: list[Any] = [row for rows in figures_of.values() for row in rows]
    front = read_front(home.cards)
    material = Material(
        (case,),
        (case.study,),
        probe_figures={name: probed},
        exhibits=load_exhibits(front.exhibits if front else ()),
        cards=home.cards,
    )
    pages = list(all_pages(material))
    names = {page.name for page in pages}
    for page in pages:
        drawn = list(figures(rendered(page, names, drawn=True)))
        yield page.name, drawn, expected(case, page, drawn)


def check(page: str, drawn: list[Figure], registered: Expected) -> Counter[str]:
    """Check the marks of a page, and return how many there are of each kind."""
    found = sorted((figure.kind, rows) for figure in drawn for rows in shown(figure))
    assert found == sorted((kind, table(rows)) for kind, rows in registered), page
    marks = [(figure, mark) for figure in drawn for drawing in figure.drawings for mark in drawing]
    for figure, mark in marks:
        check_sentence(figure, mark)
    return Counter(figure.kind for figure, _ in marks)


@pytest.mark.parametrize("name", STUDIES)
def test_every_mark_says_what_the_registers_give(name, home, capsys) -> None:
    counted: Counter[str] = Counter()
    for shown_page in pages_of(home, name):
        counted += check(*shown_page)
    with capsys.disabled():
        print(f"\n{name}: {counted.total()} marks, {', '.join(f'{k} {n}' for k, n in counted.items())}")
    assert counted.keys() >= {"set", "member", "rule", "lane"}


@pytest.mark.parametrize(
    ("pattern", "damaged"),
    [
        (r'(aria-label="[^"]*?step )20:', r"\g<1>89:"),
        (r'(aria-label="[^"]*?, 5)\d\.', r"\g<1>0.0"),
        (r'(data-row="[^",]*,\d+),(\d+)', r"\1,1\2"),
        (r'<circle [^>]*class="mark[^>]*>', ""),
        (r'(<figure class="chart" .*?</figure>)', ""),
    ],
    ids=["another step", "another rate", "another row", "a mark that is not there", "no drawing"],
)
def test_a_mark_that_says_something_else_is_found(case: Case, pattern: str, damaged: str) -> None:
    page = next(iter(run.pages(Material((case,)))))
    text = rendered(page, drawn=True)

    def checked(text: str) -> Counter[str]:
        drawn = list(figures(text))
        return check(page.name, drawn, expected(case, page, drawn))

    assert checked(text)
    found = re.sub(pattern, damaged, text, count=1, flags=re.DOTALL)
    assert found != text
    with pytest.raises(AssertionError):
        checked(found)
