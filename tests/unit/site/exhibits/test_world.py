"""The pages of worlds: true to the episodes that they show; the draw box draws what `toolkit draw` draws."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.node import in_node
from tests.unit.site.reading import (
    Read,
    pages_of,
    rendered,
)
from toolkit.decisions.case import Case
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.verification.replay import ReplayedEpisode, choose_pairs
from toolkit.noise.draws import Schedule
from toolkit.noise.regimes import REGIMES, retry_after
from toolkit.registers.study import open_study
from toolkit.site.exhibits import world
from toolkit.site.exhibits.world import draw_rules, pairs
from toolkit.site.material import Material
from toolkit.structs import replace

SAME = ("key", "digest", "fault")
HOSTILE = "</li><script>x</script>"


@pytest.fixture(scope="module")
def recorded(embedded: Case) -> tuple[ReplayedEpisode, ...]:
    return choose_pairs(embedded.study)


def test_a_home_without_a_study_of_this_world_has_no_page(case: Case) -> None:
    assert pages_of(Material((case,), (case.study,)), world) == {}


def test_a_home_with_its_tasks_has_one_without_episodes() -> None:
    pools = open_study(CHECKOUT / "registers" / "task-pools")
    read = Read(pages_of(Material((), (pools,)), world)["world.html"])
    assert all(tool in read.text for tool in TOOLS)
    assert "player" not in read.ids


def test_every_call_of_both_designs_stands_on_the_page_without_scripts(recorded) -> None:
    text = rendered(world.page("embedded", recorded))
    assert text.count('<li data-key="') == sum(len(one.episode.trace or ()) for one in recorded)
    Read(text)


def test_calls_that_ask_for_one_event_point_at_each_other(recorded: tuple[ReplayedEpisode, ...]) -> None:
    for pair in pairs("embedded", recorded):
        one, other = pair["sides"]
        for call in one["calls"]:
            for _, at in call["twins"]:
                twin = other["calls"][at - 1]
                assert [twin[name] for name in SAME] == [call[name] for name in SAME]


def test_a_draw_is_the_schedules_own(recorded: tuple[ReplayedEpisode, ...]) -> None:
    pair = pairs("embedded", recorded)[0]
    call = next(call for call in pair["sides"][0]["calls"] if call["key"])
    tool, resource, repeat = call["key"].split(" · ")
    assert Schedule(int(pair["seed"])).draw(tool, resource, int(repeat)).digest.hex() == call["digest"]


def test_a_replay_command_names_the_row(recorded: tuple[ReplayedEpisode, ...]) -> None:
    row, command = recorded[0].row, pairs("embedded", recorded)[0]["sides"][0]["command"]
    assert dict(re.findall(r"--(\w+) (\S+)", command)) == {
        "study": "embedded",
        "run": recorded[0].run["run_id"],
        **{name: str(row[name]) for name in ("phase", "regime", "step", "task", "schedule")},
    }


def test_hostile_answers_are_shown_as_text(recorded: tuple[ReplayedEpisode, ...]) -> None:
    first, *rest = recorded
    trace: Sequence[Any] = first.episode.trace or ()
    forged = trace[0]._replace(answer={HOSTILE: HOSTILE * 3000}, arguments={"query": HOSTILE})
    episode = first.episode._replace(trace=(forged, *trace[1:]))
    text = rendered(world.page(HOSTILE, (replace(first, episode=episode), *rest)))
    assert HOSTILE not in text
    assert HOSTILE in Read(text).text


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
