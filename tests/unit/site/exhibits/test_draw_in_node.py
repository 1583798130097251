"""The draw box draws what `toolkit draw` draws, and says what it means in every regime."""

import json
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.node import in_node
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.noise.draws import Schedule
from toolkit.noise.regimes import REGIMES, retry_after
from toolkit.site.exhibits.world import draw_rules

VECTORS = json.loads((CHECKOUT / "tests" / "vectors" / "draws.json").read_text(encoding="utf-8"))["draws"]
SCRIPT = CHECKOUT / "toolkit" / "site" / "exhibits" / "assets" / "world.js"
# JSON carries a repeat index as a number; the browser's code takes a bigint.
_KEY = "key.map((part) => typeof part === 'number' ? BigInt(part) : part)"


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    body = f"return Promise.all(given.map(({{seed, key}}) => toolkitDraw.draw(BigInt(seed), {_KEY})))"
    found: list[dict[str, Any]] = in_node(body, VECTORS, SCRIPT)
    return found


@pytest.mark.parametrize("part", ["digest", "gate", "type", "magnitude"])
def test_every_vector_is_drawn_to_the_last_bit(drawn: list[dict[str, Any]], part: str) -> None:
    assert [found[part] for found in drawn] == [vector[part] for vector in VECTORS]


def test_every_regime_gives_the_fault_that_the_simulator_gives() -> None:
    events = [
        (seed, tool.name, "O-10233", repeat)
        for seed in range(60)
        for tool in TOOLS.values()
        if tool.kind != "control"
        for repeat in (0, 1)
    ]
    expected = []
    for seed, tool, resource, repeat in events:
        draw = Schedule(seed).draw(tool, resource, repeat)
        expected.append([regime.fault(TOOLS[tool], repeat, draw) for regime in REGIMES.values()])
    assert {fault for faults in expected for fault in faults} >= {
        "outage",
        "truncation",
        "field_dropout",
        None,
    }
    body = """
        const faults = async ([seed, tool, resource, repeat]) => {
          const drawn = await toolkitDraw.draw(BigInt(seed), [tool, resource, BigInt(repeat)]);
          const { rules } = given;
          return rules.regimes.map((r) => toolkitDraw.fault(rules, r, tool, BigInt(repeat), drawn));
        };
        return Promise.all(given.events.map(faults));
    """
    given = {"rules": json.loads(json.dumps(draw_rules(), sort_keys=True)), "events": events}
    assert in_node(body, given, SCRIPT) == expected


def test_a_rate_limit_lasts_as_long_as_in_the_simulator() -> None:
    body = """
        const last = async (seed) =>
          toolkitDraw.retryAfter(given.rules, await toolkitDraw.draw(BigInt(seed), ["get_order", "O-1", 0n]));
        return Promise.all(given.seeds.map(last));
    """
    seeds = list(range(40))
    expected = [retry_after(Schedule(seed).draw("get_order", "O-1", 0)) for seed in seeds]
    assert set(expected) == {1, 2, 3, 4, 5}
    assert in_node(body, {"rules": draw_rules(), "seeds": seeds}, SCRIPT) == expected


@pytest.mark.parametrize("seed", ["-1", str(2**64)])
def test_a_seed_out_of_range_is_refused(seed: str) -> None:
    body = (
        "try { await toolkitDraw.draw(BigInt(given), ['grader']); return null } catch (e) { return e.name }"
    )
    assert in_node(body, seed, SCRIPT) == "RangeError"
