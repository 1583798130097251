"""References of a site: every one leads somewhere in it, and pages keep their own policy."""

import pytest

from tests.unit.website.reading import CSP
from toolkit.website.links import check_links

META = f'<meta http-equiv="Content-Security-Policy" content="{CSP}">'
OTHERS = {"a/b.html": f'{META}<p id="here">x</p>', "a/c d.html": META, "style.css": "", "site.js": ""}


def findings(body: str, *, head: str = META, name: str = "a/page.html") -> list[str]:
    files = {**OTHERS, name: f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"}
    return [str(f) for f in check_links({name: text.encode() for name, text in files.items()})]


@pytest.mark.parametrize(
    "body",
    [
        '<a href="b.html">x</a>',
        '<a href="b.html#here">x</a>',
        '<a href="c%20d.html?x=1">x</a>',
        '<p id="top"></p><a href="#top">x</a>',
        '<a href="b.html#study=x&amp;sql=FROM%20runs">x</a>',
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


def test_files_that_are_not_checked_may_be_referred_to() -> None:
    page = {"index.html": f'{META}<a href="v1/index.html">x</a>'.encode()}
    assert [str(f) for f in check_links(page)] == ["index.html: broken link: v1/index.html"]
    assert list(check_links(page, ["v1/index.html"])) == []
