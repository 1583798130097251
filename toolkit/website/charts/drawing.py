"""From an Altair chart to an inline drawing with its words, drawn once for the same input."""

from __future__ import annotations

import hashlib
import json
import os
import re
import textwrap
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache, wraps
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from toolkit.errors import IncompleteError
from toolkit.files import write_all
from toolkit.website.charts.theme import config

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 640
LINE = 86
"""Letters of a heading that fit the width."""
SMALLER = 100
MOST_LINES = 3
P = ParamSpec("P")


@dataclass(frozen=True)
class Chart:
    """A drawn chart.

    Args:
        title: states the finding.
        caption: what it shows, in words: every mark, and the unit of resampling of every interval.
        svg: the drawing, which needs no script.
        specification: the Vega-Lite specification as JSON, for readers whose browser runs scripts.
    """

    title: str
    caption: str
    svg: str
    specification: str

    @property
    def document(self) -> Any:
        """The specification, as what its JSON says."""
        return json.loads(self.specification)


def draw(chart: Any, title: str, caption: str, height: int | None = None, *, subtitle: str = "") -> Chart:
    """Draw an Altair chart.

    Args:
        chart: the chart, without size, title and configuration.
        title: states the finding.
        caption: what it shows, in words.
        height: of the plot, in pixels; None where its facets or steps say.
        subtitle: what is measured, under the title.
    """
    return drawn(specified(chart, title, height, subtitle), title, caption)


def specified(chart: Any, title: str, height: int | None = None, subtitle: str = "") -> dict[str, Any]:
    """Return an Altair chart's specification; arguments as `draw`."""
    size = {} if height is None else {"width": WIDTH, "height": height}
    # Held to the schema by a test: it takes longer than drawing.
    specification: dict[str, Any] = (
        chart.properties(title=heading(title, subtitle), **size).configure(**config()).to_dict(validate=False)
    )
    return specification


def heading(title: str, subtitle: str = "") -> dict[str, Any]:
    """Return a title over a subtitle, in lines that fit the drawing."""
    return {"text": lines(title), **({"subtitle": lines(subtitle, SMALLER)} if subtitle else {})}


def drawn(specification: dict[str, Any], title: str, caption: str) -> Chart:
    """Draw a finished specification: for charts of one form, which Altair made once."""
    text = json.dumps(specification, sort_keys=True, separators=(",", ":"))
    return Chart(title, caption, _accessible(_svg(text), title, caption), text)


def lines(text: str, wide: int = LINE) -> list[str]:
    """Return a heading as lines that fit the drawing; a word that is longer than a line is cut."""
    return textwrap.wrap(text, wide, max_lines=MOST_LINES, placeholder=" …") or [""]


def drawn_once(make: Callable[P, Chart | None]) -> Callable[P, Chart | None]:
    """Keep what a function draws, on disk, by its arguments and the code of all charts.

    The arguments need a `repr` that says everything that they are: numbers, texts, tuples, frozen values.
    """

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Chart | None:
        said = repr((make.__module__, make.__qualname__, args, sorted(kwargs.items())))
        name = f"{hashlib.sha256((_code() + said).encode()).hexdigest()}.json"
        kept = _folder() / name
        with suppress(OSError, ValueError):
            # A page shows a drawing as it is: one that is not as it was kept is drawn again.
            digest, _, text = kept.read_text(encoding="utf-8").partition("\n")
            if digest == _digest(name, text):
                document = json.loads(text)
                return None if document is None else Chart(**document)
        chart = _unchecked(make, *args, **kwargs)
        text = json.dumps(asdict(chart) if chart else None)
        with suppress(IncompleteError):  # a home that cannot be written makes the next build slower
            write_all(_folder(), {name: f"{_digest(name, text)}\n{text}".encode()})
        return chart

    return made


def _unchecked(make: Callable[P, Chart | None], *args: P.args, **kwargs: P.kwargs) -> Chart | None:
    """Draw without holding every part to the schema: that takes longer than drawing, and a test does it."""
    from altair.utils import schemapi

    with schemapi.debug_mode(arg=False):
        return make(*args, **kwargs)


def _digest(name: str, text: str) -> str:
    """Return the digest of a kept drawing under its own name."""
    return hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "toolkit" / "charts"


@lru_cache(maxsize=1)
def _code() -> str:
    """Return the digest of what decides how a chart looks: this package's code and what draws."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    for name in ("altair", "vl-convert-python"):
        digest.update(f"{name} {version(name)}".encode())
    return digest.hexdigest()


@lru_cache(maxsize=256)
def _svg(specification: str) -> str:
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(specification, vl_version="6.4")
    return svg


def _accessible(svg: str, title: str, caption: str) -> str:
    """Give the drawing a role, a name and a description; the style sheet lets it scale with the page."""
    names = f"<title>{escape(title)}</title><desc>{escape(caption)}</desc>"
    body = svg.replace("<svg ", '<svg role="img" ', 1)
    return re.sub(r"(<svg [^>]*>)", lambda match: match[1] + names, body, count=1)
