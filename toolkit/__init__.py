"""Check and run pre-registered reinforcement-learning studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.registers.study import Study

__version__ = "0.1.0"


def open_study(name: str, *, offline: bool = False) -> Study:
    """Open a study by name, path, or `owner/name@revision` on the Hub.

    A study of the Hub is pulled at the commit that the revision is, and checked file by file; what has to be
    known about that (such as that the Hub was not asked) is a warning of the module `logging`.

    Args:
        name: a study of this home, a folder that holds a manifest, or a dataset repository.
        offline: whether a study of the Hub is taken from the cache alone.

    Returns:
        The study: `rows`, `arrow`, `polars` give its tables, `origin` says which commit of the Hub it is.

    Raises:
        ToolkitError: it cannot be had, or is not what its manifest names; the error says what to do.
    """
    from toolkit import api

    return api.open_study(name, offline=offline)
