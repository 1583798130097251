"""What the search finds: pages, columns and words, with where each stands."""

from collections.abc import Iterable, Iterator

from toolkit.site.environment import json_text
from toolkit.site.page import Page

# At the root: in `data` a study of that name would have a script there.
SCRIPT = "search-index.js"
_KINDS = {"rule.html": "Rule", "run.html": "Run", "study.html": "Study", "registration.html": "Registration"}


def search_script(pages: Iterable[Page]) -> str:
    """Return a script with everything that can be found: kind, name, meaning, and place.

    Readers open pages from a folder, where a script can be loaded and nothing can be fetched.
    """
    found: dict[tuple[str, str, str], str] = {}
    for page in pages:
        for kind, name, meaning, place in _entries(page):
            found.setdefault((kind, name, meaning), place)
    return f"globalThis.toolkitSearch={json_text([[*entry, place] for entry, place in found.items()])};\n"


def _entries(page: Page) -> Iterator[tuple[str, str, str, str]]:
    yield _KINDS.get(page.template, "Page"), page.title, "", page.name
    for word, meaning in page.context.get("terms", {}).items():
        yield "Word", word, meaning, f"{page.name}#words"
    if page.template == "data.html":
        for described in page.context["schema"]:
            table = described["table"].name
            for column in described["columns"]:
                yield "Column", f"{table}.{column.name}", column.meaning, f"{page.name}#table-{table}"
