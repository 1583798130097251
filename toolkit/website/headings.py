"""Links to the sections of a page: one at each heading, and a list of them where a page is long."""

import re

# A page of fewer sections is seen at a glance.
_LONG = 4
# Templates alone write headings with an id: everything else on a page was escaped.
_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)
_BESIDE = re.compile(r"<(small|span)\b.*?</\1>|<[^>]+>", re.DOTALL)
_BEFORE = "</h1>"


def with_contents(text: str, name: str) -> str:
    """Return a page whose headings can be linked to, with a list of its contents below its title.

    Args:
        text: of the page, rendered.
        name: of the page; the front page is its own list.
    """
    headings = [(id_, " ".join(_BESIDE.sub("", words).split())) for id_, words in _HEADING.findall(text)]
    if len(headings) < _LONG:
        return text
    linked = _HEADING.sub(
        r'<h2 id="\1">\2 <a class="self" href="#\1" aria-label="Link to this section"></a></h2>', text
    )
    if name == "index.html":
        return linked
    entries = "".join(f'<li><a href="#{id_}">{words}</a></li>' for id_, words in headings)
    contents = (
        '\n<nav class="contents" aria-label="On this page"><details><summary>On this page</summary>'
        f"<ol>{entries}</ol></details></nav>"
    )
    return linked.replace(_BEFORE, _BEFORE + contents, 1)
