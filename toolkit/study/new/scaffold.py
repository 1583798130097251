"""The files that a new study begins with: registration, rules, mapping, card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files

from toolkit.study.new.outline import Outline

UNFILLED = "FILL IN"


def scaffold(outline: Outline, repository: str) -> dict[str, str]:
    """Return the text of every file of a new study, by its path in the project.

    Args:
        outline: what is known of the study.
        repository: where it will be published, as `owner/name`.
    """
    name = outline.name
    return {
        f"prereg/{name}/rules.toml": _rules(outline),
        f"prereg/{name}/protocol.md": _template("protocol").format(name=name),
        f"mappings/{name}.toml": _mapping(outline),
        f"cards/{name}.md": _template("card").replace("@name@", name).replace("@repository@", repository),
        "registers/.gitkeep": "",
    }


def _template(name: str) -> str:
    return (files(__package__) / "templates" / f"{name}.txt").read_text(encoding="utf-8")


def _rules(outline: Outline) -> str:
    arms, condition = outline.arms[:2], outline.conditions[0]
    several = len(outline.steps) > 1
    over_steps = 'over_steps = "auc"\n' if several else ""
    what = "AUC of success over the steps" if several else "Success"
    return _template("rules").format(
        name=outline.name,
        arms=_list(outline.arms),
        regimes=_list(outline.regimes),
        pools=_list(outline.pools),
        matrix="\n".join(
            MATRIX.format(condition=each, arms=_list(outline.arms), seeds=_list(outline.seeds))
            for each in outline.conditions
        ),
        phase=outline.constants.get("phase", "final"),
        pool=outline.pools[0],
        regime=outline.regimes[0],
        tasks=outline.tasks,
        schedules=outline.schedules,
        what=what,
        first=arms[0],
        second=arms[1],
        condition=condition,
        two=_list(arms),
        seeds=_list(outline.seeds),
        steps=_list(outline.steps),
        over_steps=over_steps,
    )


def _mapping(outline: Outline) -> str:
    values = "".join(
        f"\n# A word of the table = a word of [words] in the rules.\n[values.{target}]\n{_pairs(words)}"
        for target, words in outline.values.items()
    )
    return _template("mapping").format(
        name=outline.name,
        columns=_pairs(outline.columns),
        constants=_pairs(outline.constants),
        values=values,
    )


def _pairs(pairs: Mapping[str, str]) -> str:
    return "".join(f"{_key(name)} = {_quoted(value)}\n" for name, value in pairs.items())


def _key(name: str) -> str:
    return name if name.replace("_", "").isascii() and name.replace("_", "").isalnum() else _quoted(name)


def _list(values: Iterable[object]) -> str:
    return "[" + ", ".join(_quoted(v) if isinstance(v, str) else str(v) for v in values) + "]"


def _quoted(text: str) -> str:
    """Return a TOML string."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


MATRIX = """\
[[matrix]]
tier = 1
condition = "{condition}"
noise = "FILL IN: what the runs of {condition} work under"
arms = {arms}
seeds = {seeds}
for = ["H1"]
"""
