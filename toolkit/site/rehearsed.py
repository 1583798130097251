"""The page of a rehearsal: one file, with nothing beside it, that says on top that it decides nothing."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from toolkit.decisions.decision import Decision
from toolkit.site.drawings import Decided, rule_charts
from toolkit.site.environment import environment


def rehearsal_page(
    done: Decided, decisions: Iterable[Decision], powers: Mapping[str, Any], **said: object
) -> str:
    """Return the page."""
    rules = [
        {"d": made, "charts": rule_charts(done, made, ()), "power": powers.get(made.rule, ())}
        for made in decisions
    ]
    assets = files("toolkit.site") / "assets"
    style = "".join((assets / f"{name}.css").read_text(encoding="utf-8") for name in ("style", "charts"))
    template = environment().get_template("rehearsal.html")
    return template.render(study=done.study.name, rules=rules, style=style, **said)
