"""`python -m small_model.first_groups FOLDER`: groups of both designs, played before any training.

The tasks are the first of one request of the training pool, under tool faults; each has a paired and an
independent group of eight. FOLDER then holds what `toolkit probe advise FOLDER --batch 6` asks for: every
rollout's reward and, where its group varies, its score in the coordinates of a fresh adapter. What is printed
says how sure the model is: its success, the entropy of what it samples, and how many groups are constant.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from small_model.quick import quick
from toolkit.errors import ToolkitError
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.episode import close
from toolkit.lab.policies.language_model.conversation import Conversation, opening
from toolkit.lab.policies.language_model.loading import load_chat, model_path
from toolkit.lab.policies.language_model.lockstep import Continuation, DeskPartner, speak
from toolkit.lab.probe.lora import Scorer
from toolkit.lab.probe.recorded import Transcript
from toolkit.lab.tasks.pools import load_task, positions
from toolkit.lab.training.recipe import Recipe, load_recipe
from toolkit.lab.training.rows import POOL
from toolkit.noise.draws import DESIGNS, group_seeds
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import derive, units

RECIPE, MODEL = "small-soft", "small-soft"
REGIME, SUB_REQUESTS = "faults_p025", 1
TASKS, SIZE, SIDE_BY_SIDE = 64, 8, 64
BATCH = 8


class Group(NamedTuple):
    """A group: its design, the task's position, what was said in each rollout, and the rewards."""

    design: str
    task: int
    spoken: list[Continuation]
    rewards: list[int]


def play(model: Any, chat: Any, recipe: Recipe, tasks: Sequence[int], seed: int) -> list[Group]:
    """Return a group of each design on each task."""
    places = [
        (design, task, schedule, derive("first-groups/v1", seed, design, task, slot, "samples"))
        for task in tasks
        for design in DESIGNS
        for slot, schedule in enumerate(
            group_seeds(design, derive("first-groups/v1", seed, task, "schedules"), SIZE)
        )
    ]
    spoken, rewards = [], []
    for first in range(0, len(places), SIDE_BY_SIDE):
        block = places[first : first + SIDE_BY_SIDE]
        desks = [
            Desk(load_task(f"{POOL}:{task}"), REGIMES[REGIME], schedule) for _, task, schedule, _ in block
        ]
        partners = [
            DeskPartner(
                chat, Conversation(opening(desk.task.prompt), samples), desk, recipe.sampling.max_turns
            )
            for desk, (*_, samples) in zip(desks, block, strict=True)
        ]
        spoken += speak(
            model,
            [chat.opening(partner.talk.messages) for partner in partners],
            partners,
            [units(samples) for *_, samples in block],
            end=chat.tokenizer.eos_token_id,
            max_tokens=recipe.sampling.max_completion_tokens,
            temperature=recipe.sampling.temperature,
        )
        rewards += [int(close(desk).true_success) for desk in desks]
        print(f"{len(spoken)} of {len(places)} rollouts", file=sys.stderr)
    return [
        Group(*places[at][:2], spoken[at : at + SIZE], rewards[at : at + SIZE])
        for at in range(0, len(places), SIZE)
    ]


def entropies(model: Any, spoken: Sequence[Continuation]) -> list[float]:
    """Return the entropy, in nats, of the distribution that each token was sampled from."""
    import torch

    found: list[float] = []
    for one in spoken:
        tokens = torch.tensor([[*one.opening, *one.tokens]])
        with torch.no_grad():
            chances = model(input_ids=tokens, use_cache=False).logits[0].log_softmax(-1)
        each = -(chances.exp() * chances).sum(-1)[len(one.opening) - 1 : -1]
        found += each[torch.tensor(one.chosen)].tolist()
    return found


def scores(model: Any, groups: Sequence[Group], temperature: float) -> Any:
    """Return a row a rollout: its score where its group varies, zeros where advantages are zero anyway."""
    import numpy as np

    rows: list[Any] = []
    with Scorer(model, temperature) as scorer:
        size = scorer.identify(_transcript(groups[0].spoken[0])).size
        for group in groups:
            if len(set(group.rewards)) == 1:
                rows += [np.zeros(size, np.float32)] * SIZE
            else:
                rows += scorer.scores([_transcript(one) for one in group.spoken], BATCH)
    return np.stack(rows)


def _transcript(one: Continuation) -> Transcript:
    return Transcript((*one.opening, *one.tokens), (*(False for _ in one.opening), *one.chosen))


def said(groups: Sequence[Group], nats: Sequence[float]) -> dict[str, float]:
    """Return what is printed of groups: rates over rollouts, tokens and groups."""
    rewards = [reward for group in groups for reward in group.rewards]
    constant = {
        f"constant_{design}": [len(set(group.rewards)) == 1 for group in groups if group.design == design]
        for design in DESIGNS
    }
    return {
        "success": sum(rewards) / len(rewards),
        "nats_a_token": sum(nats) / len(nats),
        "tokens_a_rollout": len(nats) / len(rewards),
        **{name: sum(each) / len(each) for name, each in constant.items()},
    }


def main() -> None:
    """Play, score, and print what the model is like."""
    parser = argparse.ArgumentParser(prog="python -m small_model.first_groups", description=__doc__)
    parser.add_argument("folder", type=Path, help="where rollouts and scores go")
    parser.add_argument("--model", default=MODEL, help=f"(default: {MODEL})")
    parser.add_argument("--tasks", type=int, default=TASKS, help=f"of the training pool (default: {TASKS})")
    parser.add_argument("--seed", type=int, default=0, help="of schedules and samples (default: 0)")
    options = parser.parse_args()
    try:
        print(json.dumps(_measured(options.folder, options.model, options.tasks, options.seed)))
    except ToolkitError as error:
        sys.exit(f"error: {error}")


def _measured(folder: Path, name: str, tasks: int, seed: int) -> dict[str, float]:
    import numpy as np
    import torch
    from peft import LoraConfig, get_peft_model

    from toolkit.lab.training.language_model.session import load_base
    from toolkit.lab.training.recipe import lora_arguments

    torch.set_num_threads(1)
    recipe = load_recipe(RECIPE, model=name)
    base = load_base(model_path(name), recipe, cpu=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = get_peft_model(base, LoraConfig(**lora_arguments(recipe, base))).eval()
    chat = load_chat(model_path(name), None, (("enable_thinking", recipe.engine.thinking),))
    folder.mkdir(parents=True, exist_ok=True)
    with quick():
        groups = play(model, chat, recipe, positions(POOL, SUB_REQUESTS)[:tasks], seed)
        nats = entropies(model, [one for group in groups for one in group.spoken])
        np.save(folder / "scores.npy", scores(model, groups, recipe.sampling.temperature))
    rows = [
        {"design": design, "task": task, "group": f"{design} {task}", "reward": reward}
        for design, task, _, rewards in groups
        for reward in rewards
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "rollouts.jsonl").write_text(lines, encoding="utf-8")
    return said(groups, nats)


if __name__ == "__main__":
    main()
