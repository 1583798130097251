"""The page of a rehearsal: one file, with nothing beside it, that says on top that it decides nothing."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from toolkit.decisions.decision import Decision
from toolkit.website.drawings import Decided, rule_charts
from toolkit.website.environment import environment


def rehearsal_page(
    done: Decided, decisions: Iterable[Decision], powers: Mapping[str, Any], **said: object
) -> str:
    """Return the page.

    Args:
        done: the rehearsal.
        decisions: what the pilot gives.
        powers: rule → simulated studies, or why there are none.
        said: that it decides nothing, in words (`decides_nothing`), what keeps it from being frozen
            (`problems`), and what of the draft was fitted to the pilot (`fitted`).
    """
    rules = [
        {"d": made, "charts": rule_charts(done, made, ()), "power": powers.get(made.rule, ())}
        for made in decisions
    ]
    assets = files("toolkit.website") / "assets"
    style = "".join((assets / f"{name}.css").read_text(encoding="utf-8") for name in ("style", "charts"))
    template = environment().get_template("rehearsal.html")
    return template.render(study=done.study.name, rules=rules, style=style, **said)
