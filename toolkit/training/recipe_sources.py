"""Where each setting of a recipe comes from: the remark beside it in its file, or what changed it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.files import read_text
from toolkit.training.recipe import recipe_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.training.recipe import Recipe

_SECTION = re.compile(r"\[([\w.-]+)\]\s*(?:#\s*(.*))?")
_SETTING = re.compile(r"([\w-]+)\s*=\s*(?:\"[^\"]*\"|[^#\"]*)\s*(?:#\s*(.*))?")


def setting_sources(
    name: str, recipe: Recipe, *, model: str | None, changes: Sequence[str]
) -> dict[str, str]:
    """Return where every setting of a recipe comes from, by its dotted name.

    Args:
        name: of the recipe, or the path of its file.
        recipe: what was read of it, with what was asked to be otherwise.
        model: the model that was asked for; None where none was.
        changes: texts as `lora.rank=16`.
    """
    remarks = _remarks(read_text(recipe_path(name)))
    changed = dict.fromkeys((change.partition("=")[0] for change in changes), "--set")
    by_model = {} if model is None else {"model": "--model", "revision": "--model: the newest"}
    of_file = {setting: remarks.get(setting) or "the recipe" for setting in recipe.settings()}
    return of_file | by_model | changed


def _remarks(text: str) -> dict[str, str]:
    """Return the remark behind each setting; one behind a section's name is for all of it."""
    found: dict[str, str] = {}
    section, shared = "", ""
    for line in text.splitlines():
        if heading := _SECTION.fullmatch(line.strip()):
            section, shared = f"{heading[1]}.", heading[2] or ""
        elif setting := _SETTING.fullmatch(line.strip()):
            found[section + setting[1]] = setting[2] or shared
    return found
