"""A world of two files: its tools, declared once, and what is asked of them."""

from toolkit.pairing.tools import tool


class Files:
    """Two files by name."""

    def __init__(self) -> None:
        self.texts = {"notes": "milk\nbread\n", "plan": "first this\nthen that\n"}

    @tool("read", "name")
    def show(self, name: str) -> str:
        """Show a file.

        Args:
            name: the file.
        """
        return self.texts[name]

    @tool("write", "name", repeatable=True)
    def put(self, name: str, text: str) -> str:
        """Write a file.

        Args:
            name: the file.
            text: what it says from now on.
        """
        self.texts[name] = text
        return "done"


def copied(files: Files, name: str) -> float:
    """Return 1 where a file was copied, else 0."""
    return float(files.texts.get("copy") == files.texts[name])
