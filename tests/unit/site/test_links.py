"""References of a site: every one leads somewhere in it, and pages keep their own policy."""

import pytest

from tests.unit.site.reading import CSP
from toolkit.site.checking import check_links

META = f'<meta http-equiv="Content-Security-Policy" content="{CSP}">'
OTHERS = {"a/b.html": f'{META}<p id="here">x</p>', "a/c d.html": META, "style.css": "", "site.js": ""}


ADDRESS = "https://github.com/someone/paper"


def findings(
    body: str, *, head: str = META, name: str = "a/page.html", addresses: tuple[str, ...] = ()
) -> list[str]:
    files = {**OTHERS, name: f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"}
    encoded = {name: text.encode() for name, text in files.items()}
    return [str(f) for f in check_links(encoded, addresses=addresses)]


@pytest.mark.parametrize(
    "body",
    [
        '<a href="b.html">x</a>',
        '<a href="b.html#here">x</a>',
        '<a href="c%20d.html?x=1">x</a>',
        '<p id="top"></p><a href="#top">x</a>',
        '<a href="b.html#phase=x&amp;task=1">x</a>',
        '<script src="../site.js"></script>',
        '<script type="application/json" id="d">{"a": "<p>"}</script>',
        '<a href="data:text/csv,a" download>x</a>',
        '<img src="data:image/png;base64,AA" alt="">',
        '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0"/></svg>',
    ],
)
def test_what_a_page_may_hold_is_found_fault_with_by_nobody(body: str) -> None:
    assert findings(body) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html">x</a>', "broken link: gone.html"),
        ('<a href="../a">x</a>', "broken link: ../a"),
        ('<a href="../../outside.html">x</a>', "broken link: ../../outside.html"),
        ('<a href="%2e%2e/%2e%2e/outside.html">x</a>', "broken link: %2e%2e/%2e%2e/outside.html"),
        ('<a href="">x</a>', "broken link: href=''"),
        ('<img srcset="b.html 2x" alt="">', "broken link: srcset='b.html 2x'"),
        ('<a href="b.html#absent">x</a>', "no such id: b.html#absent"),
        ('<a href="#absent">x</a>', "no such id: #absent"),
        ('<a href="https://example.org/">x</a>', "off the site: https://example.org/"),
        ('<a href="//example.org/">x</a>', "off the site: //example.org/"),
        ('<a href="/b.html">x</a>', "off the site: /b.html"),
        ('<a href="\\\\example.org">x</a>', "off the site: \\\\example.org"),
        ('<a href="java&#9;script:alert(1)">x</a>', "off the site: java\tscript:alert(1)"),
        ('<a href="javascript:alert(1)">x</a>', "off the site: javascript:alert(1)"),
        ('<a href="data:text/html,x">x</a>', "off the site: data:text/html,x"),
        ('<script src="https://cdn.example/x.js"></script>', "off the site: https://cdn.example/x.js"),
        ("<script>alert(1)</script>", "markup: a script stands in the text"),
        ("<style>p {}</style>", "markup: a style stands in the text"),
        ('<p style="color: red">x</p>', "markup: style on <p>"),
        ('<p onclick="x()">x</p>', "markup: onclick on <p>"),
        ('<p id="a"></p><p id="a"></p>', "markup: the id 'a' stands twice"),
        ("<section><p>x</p>", "markup: <section> is not closed before </body>"),
        ("</section>", "markup: </section> closes nothing"),
        ('<iframe src="b.html"></iframe>', "markup: a page has no <iframe>"),
        ("<object></object>", "markup: a page has no <object>"),
        ('<embed src="b.html"></embed>', "markup: a page has no <embed>"),
        (
            '<meta http-equiv="Refresh" content="0;url=https://example.org/">',
            "markup: a page has no <meta http-equiv='Refresh'>",
        ),
        ('<a href="https://example.org/" href="b.html">x</a>', "markup: an attribute stands twice on <a>"),
    ],
)
def test_what_is_wrong_with_a_page_is_said_in_one_line(body: str, problem: str) -> None:
    assert findings(body) == [f"a/page.html: {problem}"]


def leaving(address: str) -> str:
    return f'<a href="{address}" rel="external noopener">x</a>'


@pytest.mark.parametrize("below", ["", "/", "/tree/0f3b", "/blob/v1.0/a-b_c~d@e.py"])
def test_a_link_to_a_declared_address_or_below_it_is_no_fault(below: str) -> None:
    assert findings(leaving(ADDRESS + below), addresses=(ADDRESS,)) == []
    assert findings(leaving(ADDRESS + below), addresses=("https://example.org/", ADDRESS + "/")) == []


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)//https://github.com/someone/paper",
        "//github.com/someone/paper",
        "http://github.com/someone/paper",
        "HTTPS://github.com/someone/paper",
        "data:text/html,https://github.com/someone/paper",
        "https://github.com/someone/paper-evil",
        "https://github.com/someone/paper.evil.example",
        "https://github.com/someone",
        "https://github.com.evil.example/someone/paper",
        "https://github.com@evil.example/someone/paper",
        "https://github.com:443/someone/paper",
        "https://github.com\\@evil.example/someone/paper",
        "https://evil.example/https://github.com/someone/paper",
        "https://github.com/someone/paper/../../evil",
        "https://github.com/someone/paper/..",
        "https://github.com/someone/paper/%2e%2e/evil",
        "https://github.com/someone/paper\\..\\evil",
        "https://github.com/someone/paper//evil",
        "https://github.com/someone/paper?to=https://evil.example",
        "https://github.com/someone/paper#x",
        "https://github.com/someone/paper/\nevil",
        " https://github.com/someone/paper",
        "https://github.com/someone/p\u0430per",
    ],
)
def test_no_other_address_passes_for_a_declared_one(address: str) -> None:
    assert len(findings(leaving(address), addresses=(ADDRESS,))) == 1


@pytest.mark.parametrize(
    "body",
    [
        f'<a href="{ADDRESS}">x</a>',
        f'<a href="{ADDRESS}" rel="external">x</a>',
        f'<a href="{ADDRESS}" rel="noopener">x</a>',
        f'<a cite="{ADDRESS}" rel="external noopener">x</a>',
        f'<img src="{ADDRESS}" rel="external noopener" alt="">',
        f'<script src="{ADDRESS}" rel="external noopener"></script>',
        f'<link href="{ADDRESS}" rel="external noopener stylesheet">',
        f'<form action="{ADDRESS}" rel="external noopener"></form>',
    ],
)
def test_a_declared_address_is_linked_to_with_a_mark_and_never_loaded(body: str) -> None:
    assert findings(body, addresses=(ADDRESS,)) == [f"a/page.html: off the site: {ADDRESS}"]


@pytest.mark.parametrize(
    "head",
    ["<title>x</title>", META.replace("default-src 'none'; ", ""), META + META],
    ids=["none", "weaker", "twice"],
)
def test_a_page_carries_the_whole_policy_once(head: str) -> None:
    (finding,) = findings("", head=head)
    assert finding.startswith("a/page.html: policy: ")


def test_a_policy_that_comes_after_a_script_is_found() -> None:
    assert findings("", head=f'<script src="../site.js"></script>{META}') == [
        "a/page.html: markup: <script> stands before the policy"
    ]


def test_a_style_sheet_refers_to_nothing_off_the_site() -> None:
    style = b"@import 'more.css'; p { background: url(https://example.org/x.png) } q { src: url(style.css) }"
    assert [str(f) for f in check_links({"style.css": style})] == [
        "style.css: broken link: more.css",
        "style.css: broken link: https://example.org/x.png",
    ]
