"""Attributes of a task, as one text of `task_pools`: canonical JSON, attribute → word."""

import json
from collections.abc import Mapping

from toolkit.errors import DamagedError


def attributes_text(attributes: Mapping[str, str]) -> str:
    """Return attributes as the one text that says them."""
    return json.dumps(attributes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_attributes(text: str, where: str | None = None) -> dict[str, str]:
    """Return the attributes that a text says."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    texts = isinstance(read, dict) and all(isinstance(value, str) and value for value in read.values())
    if not texts or attributes_text(read) != text:
        raise DamagedError(
            "attributes of a task are no canonical JSON of texts",
            expected=attributes_text({"name": "value"}),
            found=text[:80],
            where=where,
        )
    return dict(read)
