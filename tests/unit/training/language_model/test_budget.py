"""Every attempted call is charged, whatever it is; after the end nothing more is sampled."""

from collections.abc import Iterator

import pytest

from tests.unit.training.language_model.scripts import (
    MIXED,
    Part,
    confused,
    hasty,
    inventive,
    stubborn,
    wordy,
)
from tests.unit.training.language_model.trained import Trained
from toolkit.episodes.desk import Agent


@pytest.fixture(params=["paired", "independent"])
def run(request: pytest.FixtureRequest) -> Trained:
    return request.getfixturevalue(request.param)


def of(run: Trained, agent: Agent) -> Iterator[tuple[Part, int]]:
    """Yield the parts of an agent, and the calls that their desks charged."""
    for step in run.steps:
        for at in range(MIXED.index(agent), 16, 8):
            yield step.parts[at], step.calls[at]


def test_an_unknown_tool_is_charged(run: Trained) -> None:
    for part, charged in of(run, inventive):
        assert part.calls[0][0] == "look_up_everything"
        assert charged == part.episode.calls


def test_arguments_of_other_names_and_missing_ones_are_charged(run: Trained) -> None:
    for part, charged in of(run, confused):
        assert [call[1] for call in part.calls[:2]] == [{"minutes": 3}, {}]
        assert charged == part.episode.calls


def test_finishing_costs_nothing(run: Trained) -> None:
    assert [charged for _, charged in of(run, hasty)] == [0] * 4


def test_numbers_as_text_are_read_as_numbers(run: Trained) -> None:
    for part, charged in of(run, wordy):
        assert part.episode.ended == "finished"
        assert charged == part.episode.calls


def test_a_spent_budget_ends_the_rollout(run: Trained) -> None:
    for part, charged in of(run, stubborn):
        assert part.episode.ended == "budget_exceeded"
        assert charged == part.episode.task.budget


def test_after_the_end_nothing_more_is_sampled(run: Trained) -> None:
    """A scripted model goes on for ever where it is asked: it has no more turns, and says noise."""
    for step in run.steps:
        for at, part in enumerate(step.parts):
            ids, mask = step.completion(at)
            assert sum(mask) == sum(map(len, part.turns))
            assert tuple(ids[-len(part.turns[-1]) :]) == part.turns[-1]
