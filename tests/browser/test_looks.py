"""How pages look: pictures for people, and what a machine can say of them."""

from typing import Any

import pytest

PHONE, DESKTOP = (390, 844), (1280, 900)
LOOKS: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "phone": (PHONE, {"has_touch": True, "is_mobile": True}),
    "desktop": (DESKTOP, {}),
    "dark": (DESKTOP, {"color_scheme": "dark"}),
    "print": ((794, 1123), {}),
}
# As much of a long page as anybody looks at.
TALLEST = 3000
WIDTHS = "() => [document.documentElement.scrollWidth, window.innerWidth]"


def test_pages_keep_to_the_width_of_a_phone(open_page, site) -> None:
    page = open_page(*PHONE, has_touch=True, is_mobile=True)
    for name in site.kinds().values():
        page.goto(site.url(name))
        taken, there = page.evaluate(WIDTHS)
        assert taken <= there, name


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_pages_keep_to_the_width_of_their_screen(open_page, site, artefacts, look) -> None:
    """And pictures of them are kept, for people to look at."""
    (width, height), options = LOOKS[look]
    page = open_page(width, height, **options)
    if look == "print":
        page.emulate_media(media="print")
    wide = {}
    for kind, name in site.kinds().items():
        page.goto(site.url(name))
        taken, there = page.evaluate(WIDTHS)
        if taken > there:
            wide[name] = (taken, there)
        tall = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
        box = {"x": 0, "y": 0, "width": width, "height": max(tall, height)}
        page.screenshot(path=artefacts / f"{kind}-{look}.png", full_page=True, clip=box)
    print(f"pictures: {artefacts}")
    assert wide == {}
