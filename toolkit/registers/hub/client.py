"""The Hub's own client, as the environment says at the time of the call."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.registers.manifest import MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from huggingface_hub import HfApi

PUBLIC = "https://huggingface.co"


def endpoint() -> str:
    """Return the Hub's address: HF_ENDPOINT, else the public Hub."""
    return (os.environ.get("HF_ENDPOINT") or PUBLIC).rstrip("/")


def cache_folder() -> Path:
    """Return the folder in which the Hub's client keeps what it downloaded."""
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if named:
        return Path(named).expanduser().resolve()
    home = os.environ.get("HF_HOME")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(home) if home else Path(base) / "huggingface").expanduser().resolve() / "hub"


def repository_cache(repository: str) -> Path:
    """Return the folder of a dataset repository within the cache."""
    return cache_folder() / f"datasets--{repository.replace('/', '--')}"


def snapshot(repository: str, commit: str) -> Path:
    """Return the folder of a commit within the cache."""
    return repository_cache(repository) / "snapshots" / commit


def is_cached(repository: str, commit: str) -> bool:
    """Whether the cache has a commit's manifest, without which nothing of it is of use."""
    return (snapshot(repository, commit) / MANIFEST_NAME).is_file()


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE says that the Hub is not to be asked."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}


def client() -> HfApi:
    """Return the Hub's client for `endpoint`, with the token of HF_TOKEN or of `hf auth login`."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(), library_name="paired-rollouts-toolkit")


@contextmanager
def bars() -> Iterator[None]:
    """Show the client's progress bars on a terminal, and none elsewhere."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
