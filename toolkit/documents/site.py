"""The site: built, checked, served."""

from typing import Annotated, TypedDict


class ZipDocument(TypedDict):
    """The site as a zip."""

    file: Annotated[str, "Its path."]
    sha256: Annotated[str, "Of the zip."]


class SiteBuildDocument(TypedDict):
    """The site as it was built."""

    folder: Annotated[str, "Where it lies."]
    pages: Annotated[int, "Files of the site."]
    rendered: Annotated[bool, "False where the site was built from the same inputs and is as it was written."]
    changed: Annotated[list[str], "Files that have other bytes than before."]
    zip: Annotated[ZipDocument | None, "With --zip."]


class FindingDocument(TypedDict):
    """One thing that is wrong with the site."""

    file: Annotated[str, "Below the site's folder."]
    kind: Annotated[str, "As `differs`, `absent`, `unexpected`, `broken link`, `over budget`."]
    what: Annotated[str, "What was found there."]


class SiteCheckDocument(TypedDict):
    """Whether the site is what its registers give, and works as a site."""

    folder: Annotated[str, "Where it lies."]
    files: Annotated[int, "That the registers give."]
    identical: Annotated[bool, "Whether it is what the registers give, byte for byte."]
    findings: list[FindingDocument]


class SiteServeDocument(TypedDict):
    """The site as it is served; printed before the first request."""

    address: Annotated[str, "Where a browser finds it."]
    folder: Annotated[str, "What is served."]
