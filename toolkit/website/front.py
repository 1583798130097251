"""What the front page is called and asks, as a project writes it; its answer is among the findings."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.findings import FILE as FINDINGS

FILE = "site.toml"


@dataclass(frozen=True)
class Front:
    """The head of the front page.

    Args:
        title: name of the site.
        question: what was asked.
        order: studies in the order in which the site shows them; others follow.
        exhibits: names of what the project shows beside them, in order.
    """

    title: str
    question: str
    order: tuple[str, ...] = ()
    exhibits: tuple[str, ...] = ()

    def place(self, study: str) -> int:
        """Return where a study stands in the order."""
        return self.order.index(study) if study in self.order else len(self.order)


def read_front(cards: Path) -> Front | None:
    """Read the head of the front page; None where the project has none.

    Args:
        cards: the folder that holds it.

    Raises:
        DamagedError: malformed, or sentences stand here, which belong among the findings.
    """
    path = cards / FILE
    if not path.is_file():
        return None
    try:
        document = tomllib.loads(read_text(path))
        return Front(**document | {name: tuple(document.get(name, ())) for name in ("order", "exhibits")})
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise DamagedError(
            "the head of the front page cannot be read",
            expected="title, question, order, exhibits",
            found=str(error),
            where=path,
            remedy=f"what was found stands in {FINDINGS}, beside it",
        ) from None
