"""Where a model's sizes come from: a list, a folder, the package, or the `config.json` of the Hub."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import IncompleteError, ToolkitError
from toolkit.files import read_text
from toolkit.policies.language_model.shipped import model_path
from toolkit.registers.hub.client import client, telling
from toolkit.training.architecture import architecture_of

if TYPE_CHECKING:
    from toolkit.training.architecture import Architecture

KNOWN = Path(__file__).with_name("models.toml")
CONFIG = "config.json"


class Model(NamedTuple):
    """A model: its name, its architecture, and where its sizes come from."""

    name: str
    architecture: Architecture
    source: str


def known_models() -> tuple[str, ...]:
    """Return the names of the models whose sizes are listed here."""
    return tuple(_known())


def find_model(name: str, revision: str = "") -> Model:
    """Return a model by the name that a recipe gives it.

    Args:
        name: of a listed model, of one that lies with the package, of a folder, or of a repository on the
            Hub.
        revision: commit of the repository; empty for the newest.

    Raises:
        IncompleteError: its configuration cannot be had or read, or is of a kind not counted here.
    """
    known = _known()
    if name in known:
        return Model(name, architecture_of(known[name], KNOWN), known[name]["source"].strip())
    folder = Path(model_path(name))
    path = _in_folder(folder) if folder.is_dir() else _fetched(name, revision)
    try:
        config = json.loads(read_text(path))
    except ValueError as error:
        raise IncompleteError("the model's configuration is no JSON", found=error, where=path) from None
    if not isinstance(config, dict):
        raise IncompleteError("the model's configuration is no JSON object", where=path)
    return Model(name, architecture_of(config, path), str(path))


def _known() -> dict[str, dict[str, Any]]:
    return tomllib.loads(read_text(KNOWN))


def _in_folder(folder: Path) -> Path:
    """Return the configuration that a model's folder holds."""
    path = folder / CONFIG
    if not path.is_file():
        raise IncompleteError("the folder holds no model", expected=CONFIG, where=folder)
    return path


def _fetched(name: str, revision: str) -> Path:
    """Return the configuration of a repository on the Hub, in the cache."""
    try:
        with telling(name, "fetching the model's configuration"):
            return Path(client().hf_hub_download(name, CONFIG, revision=revision or None))
    except ToolkitError as error:
        raise IncompleteError(
            "the model's configuration cannot be had",
            expected=f"{', '.join(_known())}, a folder with {CONFIG}, or a repository on the Hub",
            found=error.problem,
            where=name,
            remedy="give the folder of a model, or try again where the Hub can be reached",
        ) from None
