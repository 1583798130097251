"""What a language model is trained with and on: what differs from one launch to the next."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "vllm", "flash-linear-attention")


def stack() -> dict[str, Any]:
    """Return packages and their versions, accelerators, and the number of processes."""
    import torch

    here = [f"{name} {found}" for name in PACKAGES if (found := _version(name))]
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return {
        "stack": ", ".join(here),
        "accelerator": ", ".join(names) or None,
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
