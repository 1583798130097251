"""A rule's estimate as an Altair chart, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.rules.values import rounded
from toolkit.site.charts.estimates import Spread, finding
from toolkit.site.charts.scale import marked

if TYPE_CHECKING:
    import altair as alt

MEAN = "mean"
COLOUR, MEMBER, BOUND = "#0072b2", "#8a929c", "#d55e00"


def seed_differences(spread: Spread) -> alt.LayerChart:
    """Return an estimate as a chart: a dot a member, the mean with its interval, zero and the bounds."""
    import altair as alt

    dots = [{"row": f"{spread.member} {name}", "value": rounded(value)} for name, value in spread.members]
    order = [*(str(dot["row"]) for dot in dots), MEAN]
    y = alt.Y("row:N", sort=order, title=None)
    x = alt.X("value:Q", title=spread.unit)

    def rule(at: float, colour: str) -> Any:
        return alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(color=colour).encode(x="at:Q")

    layers = [rule(0.0, "black")]
    layers += [rule(float(bound), BOUND) for bound in marked(spread.threshold, spread.bounds)]
    layers.append(
        alt.Chart(alt.Data(values=dots))
        .mark_circle(size=80, color=MEMBER)
        .encode(x=x, y=y, tooltip=["row:N", "value:Q"])
    )
    if spread.mean is not None:
        ends = {"low": float(spread.bar.low), "high": float(spread.bar.high)} if spread.bar else {}
        mean = alt.Chart(alt.Data(values=[{"row": MEAN, "value": rounded(spread.mean), **ends}]))
        if ends:
            layers.append(
                mean.mark_rule(strokeWidth=4, color=COLOUR, opacity=0.5).encode(x="low:Q", x2="high:Q", y=y)
            )
        layers.append(mean.mark_point(shape="diamond", filled=True, size=150, color=COLOUR).encode(x=x, y=y))
    chart: Any = alt.layer(*layers)
    titled: alt.LayerChart = chart.properties(title=alt.Title(finding(spread), subtitle=spread.title))
    return titled
