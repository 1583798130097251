"""What a verification ends with, and what verdicts stand on."""

from typing import Annotated, Literal, TypedDict

Verdict = Literal["verified", "not_verified", "incomplete"]
StandingName = Literal["public", "demonstration", "incomplete", "failed"]


class StandingDocument(TypedDict):
    """What the verdicts under a registration stand on."""

    standing: Annotated[
        StandingName, "`public` or `demonstration` where every step of its verification passed."
    ]
    failed_steps: Annotated[list[str], "Steps of its verification that failed."]
    missing: Annotated[list[str], "What is missing for it, each in a line."]
