"""The front page: the question, the answer, every outcome, and how to check it."""

from collections.abc import Iterator

from toolkit.findings import at
from toolkit.prereg.verification import PROMISE
from toolkit.website.drawings import estimates, pictures
from toolkit.website.material import Material
from toolkit.website.page import Page
from toolkit.website.views import decision_view, standing_view


def pages(material: Material) -> Iterator[Page]:
    """Yield the front page."""
    outcomes = [
        {
            "study": case.study.name,
            "is_summary": case.study.is_summary,
            "title": case.registration.title,
            "stands": standing_view(case),
            "decisions": [decision_view(decision) for decision in case.decide_all()],
            "pictures": list(pictures(case).values()),
            "forest": estimates(case),
        }
        for case in material.cases
    ]
    yield Page(
        "index.html",
        "home.html",
        material.front.title if material.front else "Registered outcomes",
        "home",
        {
            "front": material.front,
            "pieces": [piece for exhibit in material.exhibits for piece in exhibit.front(material)],
            "findings": at(material.findings, "front"),
            "outcomes": outcomes,
            "verifications": material.verifications,
            "promise": PROMISE,
        },
    )
