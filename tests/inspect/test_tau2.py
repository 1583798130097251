"""The retail shop of tau2-bench: a second foreign world, from the adaptation that `inspect-evals` ships."""

from functools import cache

import pytest

from tests.unit.lab.worlds.bfcl.test_world import CAREFUL, CARELESS, Fixed
from toolkit.lab.worlds import tau2
from toolkit.lab.worlds.world import open_world, play
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

# Upstream's models are declared in a way that pydantic will drop.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")

WORLD = "tau2_retail"


@cache
def shop() -> tau2.Retail:
    return tau2.Retail()


def successes(regime: str, does: dict) -> tuple[int, int, int]:  # type: ignore[type-arg]
    """Return episodes of the test pool, how many succeeded, and how many were exposed."""
    episodes = [
        play(Fixed(does), task.task_id, REGIMES[regime], evaluation_seed(task.task_id, 0), 0, world=WORLD)[1]
        for task in open_world(WORLD).tasks("test")
    ]
    return (
        len(episodes),
        sum(episode.true_success for episode in episodes),
        sum(bool(episode.exposures) for episode in episodes),
    )


def test_every_task_has_actions_that_fulfil_it() -> None:
    tau2.check()
    assert [len(shop().tasks(pool)) for pool in ("train", "validation", "test")] == [64, 26, 21]


def test_without_noise_everyone_who_follows_the_actions_succeeds() -> None:
    assert successes("clean", CARELESS) == (21, 21, 0)


def test_where_every_first_write_fails_care_decides() -> None:
    number, careful, exposed = successes("challenge", CAREFUL)
    assert careful == number
    assert successes("challenge", CARELESS)[1] == number - exposed


def test_what_is_left_undone_fails() -> None:
    task = next(task for task in shop().tasks("train") if task.writes)
    state = shop().begin(task)
    shown = [state.call(*call) for call in task.requests[0].plan[:-1]]
    assert not shop().fulfilled(task, 0, state, shown, len(shown))


def test_every_declared_tool_is_one_of_the_shop() -> None:
    state = shop().begin(shop().tasks("train")[0])
    for tool in tau2.TOOLS:
        assert callable(getattr(state._tools, tool.name))  # noqa: SLF001
