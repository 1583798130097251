"""Values of registers and of answers, as JSON has words for them."""

from __future__ import annotations

import math
from datetime import datetime


def cell(value: object) -> object:
    """Return a value as JSON holds it; what JSON has no word for becomes text."""
    match value:
        case bool() | int() | str() | None | datetime():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(key): cell(inner) for key, inner in value.items()}
        case list() | tuple():
            return [cell(inner) for inner in value]
        case _:
            return str(value)
