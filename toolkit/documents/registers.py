"""Registers: what is there, what it means, whether it is whole."""

from typing import Annotated, TypedDict


class OriginDocument(TypedDict):
    """The commit of a dataset repository on the Hub that a study was read from."""

    repository: Annotated[str, "As owner/name."]
    revision: Annotated[str, "The branch, tag or SHA that was asked for."]
    commit: Annotated[str, "SHA of the commit that it was."]
