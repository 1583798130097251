"""The files that a new study begins with: what is known is written, and the rest is to be filled in."""

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files

from toolkit.drafting.outline import OF_PILOT, Outline
from toolkit.rules.endpoints import T_OVER_SEEDS, T_OVER_TASKS

_SEVERAL = 2


def scaffold(outline: Outline, repository: str) -> dict[str, str]:
    """Return the text of every file of a new study, by its path in the project."""
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


def _interval(outline: Outline) -> tuple[str, str]:
    """Return the method whose level holds for the design, and why, as measured in the estimators' README."""
    if outline.tasks < _SEVERAL <= len(outline.seeds):
        return T_OVER_SEEDS, "There is one task: seeds are the sample, and nothing is said of other tasks."
    if len(outline.seeds) < _SEVERAL:
        return T_OVER_TASKS, "There is one seed: tasks are the sample, and nothing is said of other seeds."
    if len(outline.steps) < _SEVERAL:
        return T_OVER_TASKS, (
            "No training is seen: tasks are the sample, seeds play them again. For seeds that are training "
            f"runs, {T_OVER_SEEDS!r}."
        )
    return T_OVER_SEEDS, (
        "Every seed is a training run of its own: they are the sample, on these tasks. An interval over "
        "tasks would be too narrow."
    )


def _rules(outline: Outline) -> str:
    method, why = _interval(outline)
    arms, condition = outline.arms[:2], outline.conditions[0]
    several = len(outline.steps) >= _SEVERAL
    over_steps = 'over_steps = "auc"\n' if several else ""
    measured = "score" if outline.scores else "success"
    what = f"AUC of {measured} over the steps" if several else measured.capitalize()
    low, high = outline.scores or (0, 1)
    scores = (
        f'# What an episode can score.\n[scores]\nrange = ["{low}", "{high}"]\n\n' if outline.scores else ""
    )
    return _template("rules").format(
        name=outline.name,
        of_pilot=OF_PILOT if outline.is_of_log else "",
        arms=_list(outline.arms),
        regimes=_list(outline.regimes),
        pools=_list(outline.pools),
        matrix="\n".join(
            _template("matrix").format(condition=each, arms=_list(outline.arms), seeds=_list(outline.seeds))
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
        method=method,
        why=why,
        scores=scores,
        attributes=_attributes(outline),
        outcome='{ sum = "score", of = "episodes" }'
        if scores
        else '{ count = "successes", of = "episodes" }',
        unit="score/episodes" if scores else "fraction",
        low=low - high,
        high=high - low,
        threshold=f"{(high - low) / 20:g}",
    )


def _attributes(outline: Outline) -> str:
    """Return the section of attributes, with a set of some tasks to be uncommented."""
    if not outline.words_of_attributes:
        return ""
    name, counted = next(iter(outline.words_of_attributes.items()))
    word, tasks = next(iter(counted.items()))
    return _template("attributes").format(
        attributes="".join(
            f"{each} = {_list(words)}\n" for each, words in outline.words_of_attributes.items()
        ),
        name=name,
        word=word,
        tasks=tasks,
        schedules=outline.schedules,
        phase=outline.constants.get("phase", "final"),
        pool=outline.pools[0],
        regime=outline.regimes[0],
    )


def _mapping(outline: Outline) -> str:
    values = "".join(
        f"\n# A word of the table = a word of [words] in the rules.\n[values.{target}]\n{_pairs(words)}"
        for target, words in outline.values.items()
    )
    if outline.attributes:
        told = "# Attribute of a task, as [attributes] of the rules declares it = column of the table."
        values = f"\n{told}\n[attributes]\n{_pairs(outline.attributes)}{values}"
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
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
