"""A step is trained in the published study's world from end to end, in words that are made here."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from small_model.untrained import CONTEXT, make_tokenizer

from tests.unit.lab.training.language_model import trained as helpers
from tests.unit.lab.training.language_model.scripts import Part
from tests.unit.lab.training.language_model.small_model import conversation, saved, specified, turn_tokens
from tests.unit.lab.training.language_model.trained import FakeVllm, Trained, trained
from tests.unit.lab.worlds.published.made_words import open_small
from tests.unit.stack import require_trainer
from toolkit.lab.evaluation import sets
from toolkit.lab.play.language_model_run import train_run
from toolkit.lab.policies.language_model.conversation import opening_of
from toolkit.lab.tasks.pools import digests_sha256
from toolkit.lab.training.language_model.groups import environment
from toolkit.lab.worlds.published.faults import training_seed
from toolkit.lab.worlds.published.office import Published
from toolkit.lab.worlds.published.tasks import training_order
from toolkit.lab.worlds.world import foreign_rows
from toolkit.noise.regimes import REGIMES

FINISH = ("finish", {"summary": "done"})
SETTINGS = ["step.prompts=1", "step.rollouts=4", "step.steps=1", "step.micro_batch=4"]
RUN = {"world": "published", "group_size": 4, "regime": "clean"}


@pytest.fixture(scope="module")
def world() -> Iterator[Published]:
    require_trainer()
    with pytest.MonkeyPatch.context() as patch:
        yield open_small(patch)


def calls_of(task: Any) -> list[tuple[str, dict[str, Any]]]:
    return [*((call.tool, call.arguments) for call in task.requests[0].plan), FINISH]


Scored = list[tuple[int, int]]
"""Of each pass its sequences, and how many of them at once."""


class Runs(NamedTuple):
    """A run and what it scored; the same by another engine, and how many turns each asking wanted."""

    plain: Trained
    scored: Scored
    again: Trained
    asked: list[int]


@pytest.fixture(scope="module")
def run(world: Published, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Return a step of a group in which two rollouts carry out the plan, and two end at once."""
    from trl import GRPOTrainer

    renderer = make_tokenizer(["-"])
    texts = []
    for task in world.tasks("train"):
        desk = task.desk(REGIMES["clean"], 0)
        said = [(name, given, desk.call(name, given)) for name, given in calls_of(task)]
        texts.append(renderer.apply_chat_template(conversation(task.prompt, said), tokenize=False))
    tokenizer = make_tokenizer(texts)
    model = saved(tmp_path_factory.mktemp("model"), tokenizer)

    def find(row: Mapping[str, Any]) -> Part:
        calls = calls_of(world.tasks("train")[row["task"]]) if row["rollout_slot"] % 2 else [FINISH]
        return Part(tuple(tuple(turn_tokens(tokenizer, call)) for call in calls), tuple(calls), None)  # type: ignore[arg-type]

    scored: Scored = []
    compute = GRPOTrainer._get_per_token_logps_and_entropies

    def noted(self: Any, model: Any, ids: Any, mask: Any, kept: Any, size: Any = None, **more: Any) -> Any:
        scored.append((len(ids), size))
        return compute(self, model, ids, mask, kept, size, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(helpers, "by_place", lambda *_: find)
        patch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", noted)
        made = trained(model, tmp_path_factory.mktemp("run"), SETTINGS, **RUN)
        patch.undo()
        patch.setattr(helpers, "by_place", lambda *_: find)
        engine = FakeVllm(CONTEXT)
        engine.weights = (1.0,) * 4
        again = trained(model, tmp_path_factory.mktemp("vllm"), SETTINGS, engine=engine, **RUN)
        yield Runs(made, scored, again, engine.asked)

    return REGIMES["clean"]


def test_the_authors_task_and_schedule_are_met_and_graded(run: Runs) -> None:
    (group,) = run.plain.groups
    assert group["task"] == training_order(3)[0]
    assert group["schedule_seeds"] == [training_seed(3, "C2", 0)] * 4
    assert group["true_successes"] == group["observed_rewards"] == [False, True, False, True]
    assert group["advantages"][1] == pytest.approx(0.866, abs=1e-3)


def test_the_adapter_moves_by_what_was_said_in_that_world(run: Runs, world: Published) -> None:
    made = run.plain
    assert helpers.adapter_of(made.session) != made.start
    (step,) = made.steps
    assert step.calls == [0, len(step.parts[1].calls) - 1] * 2
    task = world.tasks("train")[step.rows[0]["task"]]
    assert step.rows[0]["prompt"] == opening_of(task)
    trainer = made.session.trainer
    assert step.prompt(0) == trainer.chat.opening(opening_of(task))
    assert trainer.chat.tools == tuple(trainer._env_tools[None]) == world.tools


def test_log_probabilities_are_computed_of_as_many_sequences_as_the_recipe_says(run) -> None:
    assert run.scored
    assert set(run.scored) == {(4, 1)}


def test_another_engine_records_the_same_and_is_not_asked_for_what_is_over(run: Runs) -> None:
    (mine,), (theirs,) = run.plain.groups, run.again.groups
    names = ("task", "schedule_seeds", "true_successes", "observed_rewards", "tokens")
    assert [mine[name] for name in names] == [theirs[name] for name in names]
    assert run.asked == [4] + [2] * (len(run.plain.steps[0].parts[1].calls) - 1)


@pytest.mark.slow
@pytest.mark.usefixtures("world")
def test_a_whole_run_of_that_world_is_complete(model, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sets.SIZES, "small", sets.Sizes(1, 1, 1, 1))
    rows = {pool: foreign_rows("published", pool) for pool in ("train", "validation", "test")}
    pools = {pool: digests_sha256([row["sha256"] for row in made]) for pool, made in rows.items()}
    short = [*SETTINGS, "step.checkpoint_every=1", "sampling.max_completion_tokens=30"]
    run = specified(model, short, **RUN, battery="small", pools=pools)
    assert train_run(run, model, tmp_path, cpu=True)
    summary = json.loads((tmp_path / run.run_id / "summary.json").read_text())
    assert (summary["shortcomings"], summary["runs"][0]["status"]) == ([], "COMPLETE")


@pytest.mark.usefixtures("world")
def test_the_trainer_and_transformers_describe_the_tools_alike(world: Published) -> None:
    from transformers import utils

    made = environment("published")()
    assert [utils.get_json_schema(getattr(made, each["function"]["name"])) for each in world.tools] == list(
        world.tools
    )
