"""What a check of the site found wrong."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is wrong.

    Args:
        file: where, below the site's folder.
        kind: of what kind, in words.
        what: what was found there.
    """

    file: str
    kind: str
    what: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.file}: {self.kind}: {self.what}"

    def as_dict(self) -> dict[str, str]:
        """Return the finding as `--json` prints it."""
        return asdict(self)
