"""The site: true, whole, safe to open."""

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import pytest

from tests.conftest import CHECKOUT, Result
from tests.unit.decisions.rows_study import registered_study
from toolkit import api
from toolkit.decisions.case import Case, open_case
from toolkit.places import Home
from toolkit.prereg.later import read_amendment
from toolkit.website.build import site_content
from toolkit.website.charts.curves import learning_curves
from toolkit.website.material import Material

SITE = CHECKOUT / "site"
# As the issue asks: nothing from anywhere but the site, and no code or style in a page's text.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """A page read strictly: tags balance, links and text are collected."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.scripts: list[tuple[str | None, str | None]] = []
        self.policies: list[str | None] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append(tag)
        self.links += [value for key in ("href", "src") if (value := named.get(key))]
        assert not any(key.startswith("on") or key == "style" for key in named)
        assert tag != "style"
        if tag == "script":
            self.scripts.append((named.get("src"), named.get("type")))
        if tag == "meta" and named.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(named["content"])
        if identifier := named.get("id"):
            assert identifier not in self.ids
            self.ids.add(identifier)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["script"]:
            self.text.append(data)


PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))


def test_the_shipped_site_is_what_the_registers_give(toolkit: Callable[..., Result]) -> None:
    result = toolkit("site", "check")
    assert result.code == 0, result.err


def test_every_rule_of_every_study_has_a_page(home: Home) -> None:
    cases = api.load_cases((), home)
    rules = {f"{case.study.name}/{rule}.html" for case in cases for rule in case.book.rules}
    assert {"index.html"} | rules <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed_and_its_links_lead_somewhere(name: str) -> None:
    page = Page((SITE / name).read_text(encoding="utf-8"))
    for link in page.links:
        if link.startswith("data:"):
            continue
        assert not re.match(r"[a-z]+:|//", link), "nothing is fetched from elsewhere"
        target, _, fragment = unquote(link).partition("#")
        if target:
            assert (SITE / PurePosixPath(name).parent / target).resolve().is_file(), link
        if fragment and not target and "=" not in fragment:  # that would be a filter
            assert fragment in page.ids


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_scripts_of_the_site_alone_under_one_policy(name: str) -> None:
    page = Page((SITE / name).read_text(encoding="utf-8"))
    assert page.policies == [CSP]
    for source, kind in page.scripts:
        assert (kind == "application/json") if source is None else (SITE / Path(source).name).is_file()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_carries_no_path_of_the_machine_that_built_it(name: str) -> None:
    assert str(CHECKOUT) not in (SITE / name).read_text(encoding="utf-8")


def test_a_hypothesis_page_shows_its_rule_its_numbers_and_its_digests(case: Case) -> None:
    text = "".join(Page((SITE / "published" / "H2a.html").read_text(encoding="utf-8")).text)
    for part in (
        "mean(c2_auc) >= 0.03",
        "0.03698",
        "-0.00156",
        "toolkit decide H2a",
        "published (percentile bootstrap",
    ):
        assert part in text
    assert case.registration.sha256 in text
    assert case.study.sha256("evaluations") in text


def test_every_drawing_has_a_name_and_a_description() -> None:
    drawings = re.findall(
        r"<svg .*?</svg>", (SITE / "published" / "H1b.html").read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(drawings) == 4
    for drawing in drawings:
        assert 'role="img"' in drawing
        assert "<title>" in drawing
        assert "<desc>" in drawing


def test_the_curves_drawn_are_the_rows(case: Case) -> None:
    """The 36 evaluations of H2a's curves, and nothing else, are in the drawing."""
    rows = [
        r
        for r in case.study.rows("evaluations")
        if r["condition"] == "C2" and r["regime"] == "faults_p025" and r["phase"] == "periodic"
    ]
    points = case.engine.curve("c2_auc")
    drawn = {(p.arm, p.series, p.step): p.success for p in points if p.series != "mean"}
    assert drawn == {
        (r["arm"], f"seed {r['seed']}", r["step"]): Fraction(r["successes"], r["episodes"]) for r in rows
    }
    chart = learning_curves(points, "C2", "successes / episodes")
    assert chart is not None
    assert len(rows) == 36
    assert chart.svg.count('aria-roledescription="line mark"') == 8  # six seeds' lines and two means
    assert "3 seeds" in chart.caption


def test_a_rule_of_two_seeds_draws_two_seeds(case: Case) -> None:
    page = (SITE / "published" / "H4.html").read_text(encoding="utf-8")
    assert {p.series for p in case.engine.curve("c4_auc_group")} == {
        "seed 0",
        "seed 1",
        "mean",
        "replication",
    }
    assert "Thin lines are 2 seeds" in page
    assert "replication that decides nothing" in page


def test_an_amended_rule_shows_what_was_frozen() -> None:
    text = "".join(Page((SITE / "published" / "H1b.html").read_text(encoding="utf-8")).text)
    assert "As frozen, before amendment A1" in text
    assert "each(probe_outcome_gate1 < 1)" in text


def made(*cases: Case) -> dict[str, bytes]:
    """Return the site of studies and nothing else."""
    return site_content(Material(cases), lambda _: None)


def amended_pages(case: Case, *texts: tuple[str, str]) -> dict[str, str]:
    """Return the words of every page once amendments were recorded."""
    new = tuple(read_amendment(f"amendments/{label}.toml", text.encode()) for label, text in texts)
    registration = replace(case.registration, amendments=(*case.registration.amendments, *new))
    pages = made(open_case(case.study, registration))
    return {
        name: " ".join("".join(Page(content.decode()).text).split())
        for name, content in pages.items()
        if name.endswith(".html")
    }


def an_amendment(label: str, relation: str, bar: str) -> tuple[str, str]:
    return label, (
        f'[amendment]\nid = "{label}"\ndated = "2027-01-0{label[1]}"\ntitle = "t"\n'
        f'seen = "Seen {label}."\nreason = "Why."\nchanges = ["c"]\n{relation} = ["N1"]\n'
        f'[rules.N1]\nkind = "prediction"\ntitle = "New"\ntext = "At least {bar}."\n'
        f'[[rules.N1.criteria]]\nid = "a"\ntext = "It is."\ntest = "mean(c2_auc) >= {bar}"\n'
    )


def test_an_added_rule_is_shown_as_added_and_never_as_frozen(case: Case) -> None:
    pages = amended_pages(case, an_amendment("A2", "adds", "0.02"))
    page = pages["published/N1.html"]
    assert "Added by amendment A2 (2027-01-02), what had been seen: Seen A2." in page
    assert "The amendment adds this rule. Why." in page
    for text in ("As frozen", "As added", "riginally", "unchanged"):
        assert text not in page
    assert pages["index.html"].count("added by amendment A2") == pages["index.html"].count("added by") == 1


def test_an_added_rule_that_was_replaced_shows_what_was_added(case: Case) -> None:
    both = an_amendment("A2", "adds", "0.02"), an_amendment("A3", "replaces", "0.04")
    page = amended_pages(case, *both)["published/N1.html"]
    assert "Added by amendment A2 (2027-01-02), what had been seen: Seen A2." in page
    assert "As added by amendment A2, before amendment A3 At least 0.02." in page
    assert "What had been seen: Seen A3." in page
    assert "As frozen" not in page


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}"


def test_hostile_text_in_registration_and_registers_is_shown_as_text(case: Case) -> None:
    registration = replace(
        case.registration,
        deviations=tuple(replace(d, title=HOSTILE, text=HOSTILE) for d in case.registration.deviations),
        rules=case.registration.rules.replace('title = "Recovery"', f'title = """{HOSTILE}"""'),
    )
    hostile = open_case(case.study, registration)
    rows = hostile.study.rows("runs")
    assert rows
    pages = made(hostile)
    for name, content in pages.items():
        if name.endswith(".html"):
            page = Page(content.decode())
            assert "img" not in page.tags
            assert all(source or kind == "application/json" for source, kind in page.scripts)
    assert HOSTILE in "".join(Page(pages["published/H3.html"].decode()).text)


def test_a_computed_interval_says_what_it_was_computed_from(case: Case, tmp_path: Path) -> None:
    rows = open_case(registered_study(tmp_path, case), case.registration)
    pages = made(rows)
    text = " ".join("".join(Page(pages["rows/H2a.html"].decode()).text).split())
    assert "computed from episode rows, 10,000 resamples (percentile bootstrap" in text
    assert "published" not in text.partition("Estimate")[2].partition("Rows")[0]


def test_a_close_call_is_shown(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    close = replace(case.engine.decide("H2a"), close_calls=("a test could turn",))
    monkeypatch.setattr(case.engine, "decide_all", lambda: (close,))
    pages = made(case)
    assert "Close call: a test could turn." in "".join(Page(pages["published/H2a.html"].decode()).text)
