"""What a reader waits for: nothing on a page moves once it is there. `make bench` has the times."""

import pytest

from tests.browser.site import MOST_SHIFT, SHIFT, STILL, OpenPage, Served, shift_of


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_on_a_page_of_any_kind_moves_while_it_loads(open_page, site, width) -> None:
    page = open_page(width)
    page.add_init_script(SHIFT)
    moved = {name: shift_of(page, site.url(name)) for name in site.kinds().values()}
    assert {name: shift for name, shift in moved.items() if shift >= MOST_SHIFT} == {}


def test_a_page_that_moves_is_seen_to(open_page: OpenPage, site: Served) -> None:
    page = open_page()
    page.add_init_script(SHIFT)
    shift_of(page, site.url("index.html"))
    page.evaluate(
        """() => {
        const late = document.createElement("div");
        late.style.height = "400px";
        document.querySelector("main").prepend(late);
    }"""
    )
    assert page.evaluate(STILL) >= MOST_SHIFT
