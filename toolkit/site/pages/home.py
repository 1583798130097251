"""The front page: the question, the answer, what surprises, every outcome, and how to check it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from toolkit.decisions.case import Case
from toolkit.findings import at
from toolkit.prereg.verification import PROMISE
from toolkit.site.drawings import outcome_tables, pictures, standing_view
from toolkit.site.material import Material
from toolkit.site.page import Page


def pages(material: Material) -> Iterator[Page]:
    """Yield the front page: the first study with all its outcomes, the others on a card each."""
    first = next(iter(material.cases), None)
    findings = at(material.findings, "front")
    yield Page(
        "index.html",
        "home.html",
        material.front.title if material.front else "Registered outcomes",
        "home",
        {
            "front": material.front,
            "answers": [f for f in findings if first and f.study == first.study.name],
            "pieces": [piece for exhibit in material.exhibits for piece in exhibit.front(material)],
            "surprises": at(material.findings, "surprise"),
            "first": _whole(first) if first else None,
            "others": [_card(case, material) for case in material.cases[1:]],
            "verifications": material.verifications,
            "promise": PROMISE,
        },
    )


def _whole(case: Case) -> dict[str, Any]:
    return {
        "study": case.study.name,
        "is_summary": case.study.is_summary,
        "title": case.registration.title,
        "stands": standing_view(case),
        "tables": outcome_tables(case),
        "charts": list(pictures(case).values()),
    }


def _card(case: Case, material: Material) -> dict[str, Any]:
    return {
        "study": case.study.name,
        "title": case.registration.title,
        "findings": [f for f in at(material.findings, "front") if f.study == case.study.name],
        "verdicts": Counter(d.verdict for d in case.decide_all()).most_common(),
        "standing": case.standing.name,
    }
