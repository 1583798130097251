"""Links to the sections of a page, and its list of contents."""

from tests.unit.site.reading import Read
from toolkit.site.render import with_contents

SECTIONS = "".join(
    f'<h2 id="s{n}">Part <em>{n}</em> &amp; more <span class="what">beside</span></h2>' for n in range(4)
)
PAGE = f"<main><h1>Title</h1><p>x</p>{SECTIONS}<h2>Without an id</h2></main>"


def test_a_heading_leads_to_itself_without_a_further_word() -> None:
    page = Read(with_contents(PAGE, "a.html"))
    assert {f"#s{n}" for n in range(4)} == set(page.links)
    assert page.text.count("#") == 0


def test_a_long_page_lists_its_sections_below_its_title() -> None:
    text = with_contents(PAGE, "a.html")
    assert text.partition("</h1>")[2].lstrip().startswith('<nav class="contents"')
    listed = text.partition("<ol>")[2].partition("</ol>")[0]
    assert listed.count("<li>") == 4
    assert '<li><a href="#s2">Part 2 &amp; more</a></li>' in listed
    assert Read(text).ids == {f"s{n}" for n in range(4)}


def test_a_short_page_and_the_front_page_have_no_list() -> None:
    short = PAGE.replace('<h2 id="s0">', "<h2>")
    assert "contents" not in with_contents(short, "a.html")
    assert "contents" not in with_contents(PAGE, "index.html")
