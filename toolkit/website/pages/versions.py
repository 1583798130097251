"""The list of frozen versions, and a page in the place of each that only they still have."""

from collections.abc import Collection, Iterator

from toolkit.website.material import Material
from toolkit.website.page import Page

NAME = "versions.html"


def pages(material: Material, current: Collection[str]) -> Iterator[Page]:
    """Yield the pages about frozen versions; none where there are none.

    Args:
        material: what the site is made of.
        current: names of all other pages. Frozen pages link to theirs: where one is gone, a page says so.
    """
    if not material.versions:
        return
    yield Page(NAME, "versions.html", "Frozen versions", "versions", {"versions": material.versions})
    having: dict[str, list[str]] = {}
    for version in material.versions:
        for name in version.pages:
            having.setdefault(name, []).append(version.name)
    for name in sorted(set(having) - set(current)):
        yield Page(name, "gone.html", "No longer here", "versions", {"having": having[name]})
