"""How often agents of known habits succeed on BFCL, under every regime with faults.

They know the answers: what differs is what they make of an error, of a cut list, of a stale read.
"""

from tests.unit.lab.worlds.bfcl.test_world import BLIND, CAREFUL, CARELESS, outcomes
from toolkit.lab.tasks.pools import FOREIGN
from toolkit.noise.regimes import REGIMES

AGENTS = {"careful": CAREFUL, "blind retry": BLIND, "careless": CARELESS}


def main() -> None:
    """Print a line a world and regime: successes of each agent, and exposed episodes, in percent."""
    print(f"{'':42}" + "".join(f"{name:>13}" for name in (*AGENTS, "exposed")))
    for world, pools in FOREIGN.items():
        for regime in (name for name, each in REGIMES.items() if each.ceiling):
            found = [outcomes(world, regime, does, tuple(pools)) for does in AGENTS.values()]
            shares = [*(success for success, _ in found), found[0][1]]
            print(f"{world:16}{regime:26}" + "".join(f"{share:13.1%}" for share in shares))


if __name__ == "__main__":
    main()
