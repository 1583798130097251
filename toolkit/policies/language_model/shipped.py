"""Models that lie with the package, in `models/` beside this file, by name."""

from __future__ import annotations

from pathlib import Path

MODELS = Path(__file__).parent / "models"
WEIGHTS = "model.safetensors"


def model_path(name: str) -> str:
    """Return the folder of a model that comes with the package; any other name as it is.

    Args:
        name: of a shipped model, of a folder, or of a model on the Hub.
    """
    folder = MODELS / name
    is_shipped = name == Path(name).name and (folder / WEIGHTS).is_file()
    return str(folder) if is_shipped else name
