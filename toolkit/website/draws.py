"""What a page needs to say what a draw means: tools, fault types, regimes."""

from typing import Any

from toolkit.backoffice.tools import ANY_RESOURCE, TOOLS
from toolkit.noise.faults import ABOUT, APPLIES, LONGEST_RATE_LIMIT
from toolkit.noise.regimes import REGIMES


def draw_rules() -> dict[str, Any]:
    """Return the parameters of every regime, as data for the browser.

    A tool's faults are those that apply to its kind, in the order in which a draw's second word reaches them.
    """
    return {
        "tools": {
            tool.name: {"kind": tool.kind, "resource": tool.resource}
            for tool in TOOLS.values()
            if tool.kind != "control"
        },
        "applies": {kind: list(faults) for kind, faults in APPLIES.items()},
        "about": dict(ABOUT),
        "any_resource": ANY_RESOURCE,
        "longest_rate_limit": LONGEST_RATE_LIMIT,
        # In a list: JSON objects are sorted by name, and regimes have an order.
        "regimes": [
            {
                "name": regime.name,
                "about": regime.about,
                "fault_rate": regime.fault_rate,
                "flip_rate": regime.flip_rate,
                "weights": dict(regime.mixture.weights) if regime.mixture else None,
                "challenge": regime.challenge,
            }
            for regime in REGIMES.values()
        ],
    }
