"""The same page of other studies: what a page is of, and where its like are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.decisions.case import Case
from toolkit.prereg.registration import Registration
from toolkit.website.material import Material
from toolkit.website.page import Link, registration_page, rule_page


@dataclass(frozen=True)
class Siblings:
    """What a page is of, and the same page elsewhere.

    Args:
        what: what the pages show, in words.
        here: what this page is of, in words.
        elsewhere: the others; the site may lack some of them.
    """

    what: str
    here: str
    elsewhere: tuple[Link, ...]


def of_study(material: Material, case: Case, what: str, page: Callable[[str], str]) -> Siblings:
    """Return the same page of the other studies.

    Args:
        material: the studies.
        case: the study that the page is of.
        what: what such a page shows, in words.
        page: names a study's page.
    """
    others = [other for other in material.cases if other.study.name != case.study.name]
    return Siblings(what, _named(case), tuple(Link(_named(o), page(o.study.name)) for o in others))


def of_rule(material: Material, case: Case, rule: str) -> Siblings:
    """Return the pages of the same rule in other studies: a rule of the same name and title."""
    title = case.book.rule(rule).title
    same = [
        other
        for other in material.cases
        if other.study.name != case.study.name
        and rule in other.book.rules
        and other.book.rules[rule].title == title
    ]
    elsewhere = tuple(Link(_named(other), rule_page(other.study.name, rule)) for other in same)
    return Siblings(f"rule {rule}", _named(case), elsewhere)


def of_registration(registrations: Sequence[Registration], name: str, material: Material) -> Siblings:
    """Return the pages of the other registrations."""
    others = [other.name for other in registrations if other.name != name]
    elsewhere = tuple(Link(_registered(other, material), registration_page(other)) for other in others)
    return Siblings("registration", _registered(name, material), elsewhere)


def _registered(name: str, material: Material) -> str:
    studies = [f"study {case.study.name}" for case in material.cases if case.registration.name == name]
    return f"{name} ({', '.join(studies) or 'no study under it is here'})"


def _named(case: Case) -> str:
    return f"study {case.study.name}{' (published figures)' if case.study.is_summary else ''}"
