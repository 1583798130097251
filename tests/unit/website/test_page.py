"""Names of pages: every page has its own."""

import pytest

from toolkit.decisions.case import Case
from toolkit.errors import UsageError
from toolkit.website import render
from toolkit.website.material import Material
from toolkit.website.page import luck_page, probe_page, rule_page, study_page
from toolkit.website.pages import study


@pytest.mark.parametrize("rule", ["index", "probe", "luck", "Index", "LUCK"])
def test_a_rule_takes_the_name_of_no_other_page(rule: str) -> None:
    others = {study_page("s"), probe_page("s"), luck_page("s")}
    assert rule_page("s", rule).casefold() not in others
    assert rule_page("s", "H1") == "s/H1.html"


def test_a_page_never_takes_the_place_of_another(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.setattr(render, "MAKERS", (study, study))
    with pytest.raises(UsageError, match="one name"):
        render.render(Material((case,)), lambda _: None)
