"""The one JSON text of a document, and its SHA-256."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical(document: Any) -> str:
    """Return the one JSON text of a document: keys sorted, no spaces, characters as they are."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def document_sha256(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document in canonical form."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()
