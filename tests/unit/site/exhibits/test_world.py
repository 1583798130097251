"""The page of the world: for homes whose studies play in it, and true to the episodes that it shows."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.unit.site.reading import Read, pages_of, rendered
from toolkit.decisions.case import Case
from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.verification.recorded import ReplayedEpisode, choose_pairs
from toolkit.noise.draws import Schedule
from toolkit.registers.study import open_study
from toolkit.site.exhibits import world
from toolkit.site.exhibits.world import pairs
from toolkit.site.material import Material

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
