"""Where on the Hub a study was read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.documents.registers import OriginDocument


@dataclass(frozen=True)
class Origin:
    """The commit of a dataset repository that a study was read from."""

    repository: str  # `owner/name`
    revision: str  # the branch, tag or SHA that was asked for
    commit: str  # SHA of the commit that it was
    asked: str  # the study's name as it was given

    @property
    def pinned(self) -> str:
        """The name that means these bytes for good."""
        return f"{self.repository}@{self.commit}"

    def as_dict(self) -> OriginDocument:
        """Return the origin as decisions state it."""
        return {"repository": self.repository, "revision": self.revision, "commit": self.commit}
