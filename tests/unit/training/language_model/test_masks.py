"""What counts in the loss: the tokens that the policy sampled, and no others."""

from typing import Any

import pytest

from tests.unit.training.language_model.small_model import conversation
from tests.unit.training.language_model.trained import Trained


@pytest.fixture(params=["paired", "independent"])
def run(request: pytest.FixtureRequest) -> Trained:
    return request.getfixturevalue(request.param)


def test_the_mask_is_one_exactly_on_what_was_sampled(run: Trained) -> None:
    for step in run.steps:
        for at, part in enumerate(step.parts):
            ids, mask = step.completion(at)
            sampled = [token for token, counts in zip(ids, mask, strict=True) if counts]
            assert sampled == [token for turn in part.turns for token in turn]


def test_between_two_turns_stand_the_answers_of_the_tools(run: Trained, tokenizer: Any) -> None:
    """A transcript is the conversation as the template renders it whole, but for the last answer."""
    for step in run.steps:
        for at, part in enumerate(step.parts):
            ids, _ = step.completion(at)
            calls = [(c.tool, c.arguments, c.answer) for c in part.episode.trace]
            messages = conversation(part.episode.task.prompt, calls)
            whole = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False)
            found = step.prompt(at) + ids
            if part.episode.ended == "stopped":
                whole = tokenizer.apply_chat_template(
                    [*messages, {"role": "assistant", "content": "done"}], tokenize=True, return_dict=False
                )
                assert found == whole
            else:
                assert found == whole[: len(found)]
                assert tokenizer.decode(whole[len(found) :]).startswith("<tool>")


def test_tokens_are_those_that_the_mask_counts(run: Trained) -> None:
    found = [group["tokens"][slot] for group, slot, _ in run.rollouts]
    assert found == [sum(map(len, part.turns)) for _, _, part in run.rollouts]


def test_a_group_s_decisions_are_the_sum_of_its_tokens(run: Trained) -> None:
    assert [group["decisions"] for group in run.groups] == [sum(group["tokens"]) for group in run.groups]


def test_the_loss_is_divided_by_the_tokens_of_the_step(run: Trained) -> None:
    for number, step in enumerate(run.steps, start=1):
        tokens = [sum(group["tokens"]) for group in run.groups if group["step"] == number]
        assert int(step.output["num_items_in_batch"]) == sum(tokens)


def test_no_token_of_the_prompt_counts(run: Trained) -> None:
    for step in run.steps:
        for at, part in enumerate(step.parts):
            assert step.prompt(at)[-1] == run.session.trainer.chat.tokenizer.convert_tokens_to_ids(
                "<assistant>"
            )
            assert step.completion(at)[0][: len(part.turns[0])] == list(part.turns[0])
