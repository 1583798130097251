"""The page of a rehearsal: one file, with nothing beside it, that says on top that it decides nothing."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Protocol

from toolkit.decisions.decision import Decision
from toolkit.website.drawings import Decided, rule_charts
from toolkit.website.environment import environment


class Rehearsed(Decided, Protocol):
    """What came of a rehearsal."""

    @property
    def decisions(self) -> Sequence[Decision]:
        """What the pilot gives."""

    @property
    def powers(self) -> Mapping[str, Any]:
        """Rule → simulated studies, or why there are none."""

    @property
    def problems(self) -> Sequence[str]:
        """What keeps it from being frozen."""

    @property
    def fitted(self) -> Sequence[str]:
        """What of the draft was fitted to the pilot."""


def rehearsal_page(done: Rehearsed, standing: str) -> str:
    """Return the page.

    Args:
        done: the rehearsal.
        standing: that it decides nothing, in words.
    """
    rules = [
        {
            "d": made,
            "charts": rule_charts(done, made, ()),
            "power": done.powers.get(made.rule, ()),
        }
        for made in done.decisions
    ]
    assets = files("toolkit.website") / "assets"
    style = "".join((assets / f"{name}.css").read_text(encoding="utf-8") for name in ("style", "charts"))
    template = environment().get_template("rehearsal.html")
    return template.render(
        study=done.study.name,
        decides_nothing=standing,
        rules=rules,
        problems=done.problems,
        fitted=done.fitted,
        style=style,
    )
