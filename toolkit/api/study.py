"""A study as programs have it: its registers, and the charts of what is decided on them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from toolkit.api.cases import open_case
from toolkit.errors import IncompleteError
from toolkit.registers import study as registers

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from toolkit.places import Home


@dataclass(frozen=True, repr=False)
class Study(registers.Study):
    """A study, opened for reading: `toolkit.open_study` returns one.

    `rows`, `arrow`, `polars`, `pandas` and `relation` give a table by name, `duckdb` all of them as views,
    `plot` the chart of a rule's estimate. `tables` says what there is. A notebook shows what the study holds.
    """

    def pandas(self, table: str) -> pd.DataFrame:
        """Return a table as a pandas data frame, its rows checked; errors as `arrow`.

        Its columns have Arrow's types: a missing number is missing, and the others of its column stay whole.

        Raises:
            IncompleteError: pandas is not installed.
        """
        _need("pandas", "pip install pandas; `polars` gives a frame without it")
        import pandas as pd

        frame: pd.DataFrame = self.arrow(table).to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    def plot(self, rule: str, home: Home | None = None) -> alt.LayerChart:
        """Draw a rule's estimate by seed, with its mean, its interval, zero and the registered threshold.

        It shows what the site's chart of the rule shows.

        Args:
            rule: name of the rule.
            home: where registrations are; found where it is left out.

        Returns:
            An Altair chart, which a notebook shows and `save` writes; in the unit of the estimate.

        Raises:
            UsageError: the registration has no such rule.
            IncompleteError: Altair is not installed, the rule has no estimate with members, or its
                registration is not here.
            DamagedError, VerificationError: as `toolkit.decide`.

        Examples:
            >>> toolkit.open_study("published").plot("H2a").save("H2a.html")  # doctest: +SKIP
        """
        _need("altair", "pip install 'paired-rollouts-toolkit[plot]'")
        from toolkit.rooms import site

        chart = site().plot(open_case(self, home), rule)
        if chart is None:
            raise IncompleteError(
                f"rule {rule!r} has no estimate to draw in study {self.name!r}",
                remedy=f"`toolkit.explain({rule!r}, {self.name!r})` says what it rests on and lacks",
            )
        return chart

    def _repr_html_(self) -> str:
        """Return the study as a notebook shows it: its tables with their rows."""
        registered, is_of = self.manifest.registration, self.manifest.evidence
        rows = "".join(
            f"<tr><td>{escape(table.name)}</td><td>{self.manifest.tables[table.name].rows:,}</td>"
            f"<td style='text-align:left'>{escape(table.meaning)}</td></tr>"
            for table in self.tables
        )
        head = "<thead><tr><th>table</th><th>rows</th><th>what a row is</th></tr></thead>"
        return (
            f"<p>Study <b>{escape(self.name)}</b>, evidence: {escape(is_of)}. Registration "
            f"{escape(registered.name)} <code>{escape(registered.sha256)}</code>.</p>"
            f"<table>{head}<tbody>{rows}</tbody></table>"
        )


def with_charts(opened: registers.Study) -> Study:
    """Return an opened study with its charts; what was read and proven of it is known to both."""
    return Study(*(getattr(opened, part.name) for part in fields(opened)))


def _need(package: str, remedy: str) -> None:
    if find_spec(package) is None:
        raise IncompleteError(f"the package {package} is not installed", remedy=remedy)
