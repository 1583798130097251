"""The README as a package index shows it, which cannot follow links into a checkout."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGE = re.compile(r"!\[[^\]]*\]\((?!https://)[^)]*\)\n*")
LINK = re.compile(r"\[([^\]]*)\]\((?!https://)[^)]*\)")


class Readme(MetadataHookInterface):
    """Leaves out images, and the targets of links, that are not addresses on the network."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme, which `pyproject.toml` declares to be dynamic."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        shown = LINK.sub(r"\1", IMAGE.sub("", text))
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
