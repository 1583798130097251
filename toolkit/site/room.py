"""What the site does for the core: `toolkit.rooms.Site`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import altair as alt

    from toolkit.decisions.case import Case
    from toolkit.errors import ToolkitError
    from toolkit.places import Home
    from toolkit.prereg.verification import Verification
    from toolkit.rooms import Built
    from toolkit.site.charts.estimates import Estimate

MEAN = "mean"
COLOUR, MEMBER, BOUND = "#0072b2", "#8a929c", "#d55e00"


def plot(case: Case, rule: str) -> alt.LayerChart | None:
    """Return a rule's estimate as an Altair chart; nothing where there is none to draw."""
    from toolkit.site.drawings import estimate_of

    estimate = estimate_of(case, case.decide(rule))
    return _seed_differences(estimate) if estimate.members else None


def _seed_differences(estimate: Estimate) -> alt.LayerChart:
    """Return an estimate as a chart: a dot a member, the mean with its interval, zero and the bounds."""
    import altair as alt

    from toolkit.rules.values import rounded
    from toolkit.site.charts.estimates import finding

    dots = [{"row": f"{estimate.member} {name}", "value": rounded(value)} for name, value in estimate.members]
    order = [*(str(dot["row"]) for dot in dots), MEAN]
    y = alt.Y("row:N", sort=order, title=None)
    x = alt.X("value:Q", title=estimate.unit)

    def rule(at: float, colour: str) -> Any:
        return alt.Chart(alt.Data(values=[{"at": at}])).mark_rule(color=colour).encode(x="at:Q")

    layers = [rule(0.0, "black")]
    layers += [rule(float(bound), BOUND) for bound in estimate.marks]
    layers.append(
        alt.Chart(alt.Data(values=dots))
        .mark_circle(size=80, color=MEMBER)
        .encode(x=x, y=y, tooltip=["row:N", "value:Q"])
    )
    if estimate.mean is not None:
        ends = {"low": float(estimate.bar.low), "high": float(estimate.bar.high)} if estimate.bar else {}
        mean = alt.Chart(alt.Data(values=[{"row": MEAN, "value": rounded(estimate.mean), **ends}]))
        if ends:
            layers.append(
                mean.mark_rule(strokeWidth=4, color=COLOUR, opacity=0.5).encode(x="low:Q", x2="high:Q", y=y)
            )
        layers.append(mean.mark_point(shape="diamond", filled=True, size=150, color=COLOUR).encode(x=x, y=y))
    chart: Any = alt.layer(*layers)
    titled: alt.LayerChart = chart.properties(title=alt.Title(finding(estimate), subtitle=estimate.what))
    return titled


def rehearsal_page(done: Any, **said: object) -> str:
    """Return the page of a rehearsal: one file with nothing beside it."""
    from importlib.resources import files

    from toolkit.site.drawings import rule_charts
    from toolkit.site.environment import environment

    rules = [
        {"d": made, "charts": rule_charts(done, made, ()), "power": done.powers.get(made.rule, ())}
        for made in done.decisions
    ]
    assets = files("toolkit.site") / "assets"
    style = "".join((assets / f"{name}.css").read_text(encoding="utf-8") for name in ("style", "charts"))
    template = environment().get_template("rehearsal.html")
    return template.render(study=done.study.name, rules=rules, style=style, **said)


def lack(target: Path) -> ToolkitError | None:
    """Return which package is missing, or nothing; a folder that is no site is refused."""
    from toolkit.site.build import check_place, lacking_packages

    check_place(target)
    return lacking_packages()


def build(
    home: Home,
    target: Path,
    verifications: Sequence[Verification],
    cases: Sequence[Case],
    progress: Callable[[str], None],
) -> Built:
    """Write the site of a home."""
    from toolkit.site.build import site_content, write_site
    from toolkit.site.commands.material import material

    return write_site(target, site_content(material(home, verifications, cases), progress))
