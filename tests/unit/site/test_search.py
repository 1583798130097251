"""What the search finds, and that it stands where the search says."""

import json

from tests.unit.site.reading import Read, made_by, rendered
from toolkit.decisions.case import Case
from toolkit.registers.schema import TABLES
from toolkit.site.material import Material
from toolkit.site.pages import data, registration, rule, run, study
from toolkit.site.search import search_script


def test_everything_that_is_found_stands_at_its_place(case: Case) -> None:
    pages = made_by(Material((case,), (case.study,)), rule, study, registration, data, run)
    script = search_script(pages.values())
    found = json.loads(script.removeprefix("globalThis.toolkitSearch=").removesuffix(";\n"))
    kinds = {kind for kind, *_ in found}
    assert kinds == {"Rule", "Study", "Registration", "Page", "Run", "Column", "Word"}
    ids: dict[str, set[str]] = {}
    for *_, place in found:
        name, _, fragment = place.partition("#")
        if fragment:
            ids.setdefault(name, set()).add(fragment)
        else:
            assert name in pages
    for name, wanted in ids.items():
        assert wanted <= Read(rendered(pages[name], pages)).ids


def test_columns_come_with_their_meaning_and_words_once(case: Case) -> None:
    pages = made_by(Material((case,), (case.study,)), rule, data)
    found = json.loads(search_script(pages.values()).partition("=")[2].removesuffix(";\n"))
    (column,) = [entry for entry in found if entry[:2] == ["Column", "evaluations.successes"]]
    known = TABLES["evaluations"].column("successes")
    assert known is not None
    assert column[2:] == [known.meaning, "data.html#table-evaluations"]
    words = [tuple(entry[1:3]) for entry in found if entry[0] == "Word"]
    assert len(words) == len(set(words))


def test_no_name_ends_the_script(case: Case) -> None:
    page = made_by(Material((case,)), study)["published/index.html"]
    hostile = type(page)(page.name, page.template, "</script>\u2028<b>", page.section)
    assert "<" not in search_script([hostile])
    assert "\u2028" not in search_script([hostile])
