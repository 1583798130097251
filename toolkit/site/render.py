"""From the material of the site to every page's text, and to what the search finds."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import toolkit
from toolkit.errors import UsageError
from toolkit.site.environment import environment, json_text
from toolkit.site.front import Front
from toolkit.site.material import Material
from toolkit.site.page import POLICY, Entry, Link, Page, registration_page, study_page
from toolkit.site.pages import data, home, luck, probe, registration, rule, run, study

MAKERS = (home, rule, registration, study, probe, luck, data, run)
# A page of fewer sections is seen at a glance.
_LONG = 4
# Templates alone write headings with an id: everything else on a page was escaped.
_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)
_BESIDE = re.compile(r"<(small|span)\b.*?</\1>|<[^>]+>", re.DOTALL)
_BEFORE = "</h1>"
# Ends that HTML lets everybody leave out, of cells and rows: a twentieth of all pages.
SPARE = re.compile(r"</t[dhr]>\n?|\n(?=\n)")


def render(material: Material, progress: Callable[[str], None]) -> dict[str, str]:
    """Return every page's text by its name, and what the search finds among them."""
    templates = environment(material.packages)
    pages = list(all_pages(material))
    names = {page.name for page in pages}
    front = material.front or Front("Registered outcomes", "")
    shared: dict[str, Any] = {
        "version": toolkit.__version__,
        "policy": POLICY,
        "menu": navigation(material, names),
        "explained": explanations(material, names),
        "site_title": front.title,
        "description": front.question,
        "links": front.links,
        "datasets": front.datasets,
        "citation": material.citation,
        "names": names,
    }
    texts: dict[str, str] = {}
    for number, page in enumerate(pages, 1):
        progress(f"page {number} of {len(pages)}, {page.name}")
        if page.name in texts:
            raise UsageError("two pages of the site have one name", found=page.name)
        template = templates.get_template(page.template)
        text = template.render(**shared, page=page, root=page.root, **page.context)
        texts[page.name] = SPARE.sub("", with_contents(text, page.name))
    return {**texts, SCRIPT: search_script(pages)}


def with_contents(text: str, name: str) -> str:
    """Return a page whose headings can be linked to, with a list of its contents below its title."""
    headings = [(id_, " ".join(_BESIDE.sub("", words).split())) for id_, words in _HEADING.findall(text)]
    if len(headings) < _LONG:
        return text
    linked = _HEADING.sub(_linked, text)
    if name == "index.html":
        return linked
    entries = "".join(f'<li><a href="#{id_}">{words}</a></li>' for id_, words in headings)
    contents = (
        '\n<nav class="contents" aria-label="On this page"><details><summary>On this page</summary>'
        f"<ol>{entries}</ol></details></nav>"
    )
    return linked.replace(_BEFORE, _BEFORE + contents, 1)


def _linked(heading: re.Match[str]) -> str:
    """Return a heading as a link to itself; one that leads elsewhere stays as it is."""
    id_, words = heading.groups()
    return heading[0] if "<a " in words else f'<h2 id="{id_}"><a class="self" href="#{id_}">{words}</a></h2>'


def all_pages(material: Material) -> Iterator[Page]:
    """Yield every page, the front page first."""
    for makes in (*(maker.pages for maker in MAKERS), *(exhibit.pages for exhibit in material.exhibits)):
        yield from makes(material)


def navigation(material: Material, names: Collection[str]) -> tuple[Entry, ...]:
    """Return the entries whose pages the site has."""
    return tuple(entry for entry in _entries(material) if entry.pages or entry.target in names)


def explanations(material: Material, names: Collection[str]) -> dict[str, Link]:
    """Return the links to what exhibits explain, by topic, whose pages the site has."""
    links = {topic: link for exhibit in material.exhibits for topic, link in exhibit.explains.items()}
    return {topic: link for topic, link in links.items() if link.target in names}


def _entries(material: Material) -> Iterator[Entry]:
    yield Entry("home", "Outcomes", "index.html")
    studies = tuple((case.study.name, study_page(case.study.name)) for case in material.cases)
    yield Entry("study", "Studies", pages=studies)
    for case in material.cases[:1]:
        yield Entry("registration", "Registration", registration_page(case.registration.name))
    yield from (exhibit.entry for exhibit in material.exhibits if exhibit.entry)
    yield Entry("data", "Data", "data.html")


# At the root: in `data` a study of that name would have a script there.
SCRIPT = "search-index.js"
_KINDS = {"rule.html": "Rule", "run.html": "Run", "study.html": "Study", "registration.html": "Registration"}


def search_script(pages: Iterable[Page]) -> str:
    """Return a script with all that can be found: from a folder, pages can load scripts alone."""
    found: dict[tuple[str, str, str], str] = {}
    for page in pages:
        for kind, name, meaning, place in _found_on(page):
            found.setdefault((kind, name, meaning), place)
    return f"globalThis.toolkitSearch={json_text([[*entry, place] for entry, place in found.items()])};\n"


def _found_on(page: Page) -> Iterator[tuple[str, str, str, str]]:
    yield _KINDS.get(page.template, "Page"), page.title, "", page.name
    for word, meaning in page.context.get("terms", {}).items():
        yield "Word", word, meaning, f"{page.name}#words"
    if page.template == "data.html":
        for described in page.context["schema"]:
            table = described["table"].name
            for column in described["columns"]:
                yield "Column", f"{table}.{column.name}", column.meaning, f"{page.name}#table-{table}"
