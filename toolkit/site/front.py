"""What the site is called, what it asks and where it leads; its answer is among the findings."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.errors import DamagedError
from toolkit.files import read_text
from toolkit.findings import FILE as FINDINGS
from toolkit.site.links import is_address

FILE = "site.toml"


@dataclass(frozen=True)
class Front:
    """The head of the front page."""

    title: str  # name of the site
    question: str  # what was asked
    order: tuple[str, ...] = ()  # studies in the order in which the site shows them; others follow
    links: Mapping[str, str] = field(default_factory=dict)  # words → address, at the foot of every page
    # Study → address of its dataset at its revision, on the study's pages
    datasets: Mapping[str, str] = field(default_factory=dict)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where pages may lead outside the site: to these, and to what lies below them."""
        return (*self.links.values(), *self.datasets.values())

    exhibits: tuple[str, ...] = ()  # names of what the project shows beside them, in order

    def place(self, study: str) -> int:
        """Return where a study stands in the order."""
        return self.order.index(study) if study in self.order else len(self.order)


def read_front(cards: Path) -> Front | None:
    """Read the head of the front page; None where the project has none."""
    path = cards / FILE
    if not path.is_file():
        return None
    try:
        document = tomllib.loads(read_text(path))
        front = Front(**document | {name: tuple(document.get(name, ())) for name in ("order", "exhibits")})
        wrong = [address for address in front.addresses if not is_address(address)]
    except (tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
        raise DamagedError(
            "the head of the front page cannot be read",
            expected="title, question, order, exhibits, [links], [datasets]",
            found=str(error),
            where=path,
            remedy=f"what was found stands in {FINDINGS}, beside it",
        ) from None
    if wrong:
        raise DamagedError(
            "the site leads to an address that is not plain",
            expected="https://, a host and a path",
            found=", ".join(map(repr, wrong)),
            where=path,
        )
    return front
