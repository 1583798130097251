"""The words of the front page, as a project writes them; they are shown only while the verdicts bear them."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.decisions.case import Case
from toolkit.errors import DamagedError
from toolkit.files import read_text

FILE = "site.toml"


@dataclass(frozen=True)
class Sentence:
    """A sentence of the answer, and the rules that bear it.

    Args:
        text: the sentence.
        rests_on: (study, rule) of each verdict that it says.
    """

    text: str
    rests_on: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Front:
    """The words of the front page.

    Args:
        title: name of the site.
        question: what was asked.
        answer: what came of it.
        order: studies in the order in which the site shows them; others follow.
    """

    title: str
    question: str
    answer: tuple[Sentence, ...]
    order: tuple[str, ...] = ()

    def place(self, study: str) -> int:
        """Return where a study stands in the order."""
        return self.order.index(study) if study in self.order else len(self.order)


def read_front(cards: Path, cases: Sequence[Case]) -> Front | None:
    """Read the words of the front page; None where the project has none.

    A sentence about a rule that no study here has is left out.

    Args:
        cards: the folder that holds them.
        cases: the studies whose verdicts they rest on.

    Raises:
        DamagedError: malformed, or a verdict is not the one that a sentence says.
    """
    path = cards / FILE
    if not path.is_file():
        return None
    try:
        document = tomllib.loads(read_text(path))
        sentences = [(entry["text"], entry["verdicts"]) for entry in document["answer"]]
        title, question, order = document["title"], document["question"], document.get("order", ())
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DamagedError(
            "the words of the front page cannot be read",
            expected="title, question, and [[answer]] with text and verdicts",
            found=str(error),
            where=path,
        ) from None
    reached: dict[tuple[str, ...], str] = {
        (case.study.name, decision.rule): decision.verdict for case in cases for decision in case.decide_all()
    }
    answer = []
    for text, verdicts in sentences:
        expected = {tuple(rule.split("/", 1)): verdict for rule, verdict in verdicts.items()}
        for rule, verdict in expected.items():
            if reached.get(rule, verdict) != verdict:
                raise DamagedError(
                    "a sentence of the front page says another verdict than the rule reaches",
                    expected=f"{'/'.join(rule)} {reached[rule]}",
                    found=f"{verdict}, in {text!r}",
                    where=path,
                )
        if expected.keys() <= reached.keys():  # a home without one of the studies cannot say it
            answer.append(Sentence(text, tuple(expected)))
    return Front(title, question, tuple(answer), tuple(order))
