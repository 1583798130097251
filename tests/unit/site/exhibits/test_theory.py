"""The page of the theory: for studies of the two designs, with the figures that the paper prints."""

from dataclasses import replace

from tests.unit.site.reading import rendered
from toolkit.decisions.case import Case
from toolkit.site.exhibits import theory
from toolkit.site.material import Material


def test_a_home_without_runs_has_no_page() -> None:
    assert list(theory.pages(Material(()))) == []


def test_a_study_in_other_words_than_paired_and_independent_has_no_page(case: Case) -> None:
    assert [page.name for page in theory.pages(Material((case,)))] == ["theory.html"]
    words = replace(case.study.manifest, words={"arm": ("greedy", "careful")})
    foreign = replace(case, study=replace(case.study, manifest=words))
    assert list(theory.pages(Material((foreign,)))) == []


def test_the_theory_page_shows_the_figures_that_the_paper_prints(case: Case) -> None:
    (page,) = theory.pages(Material((case,)))
    text = rendered(page)
    for figure in ("0.495000", "0.450000", "0.002615", "0.005845", "0.04956", "0.01367", "0.570"):
        assert figure in text
