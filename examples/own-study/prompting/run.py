"""Two prompting strategies on sums, by inspect_ai and its mock model: `python run.py FOLDER SEED...`.

The model is a stand-in, a page of Python: it adds two numbers digit by digit, and forgets a carry one time in
three; one time in ten, if it was asked to think step by step. What is found of it is true of nothing else.
"""

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate, system_message

PAIRS = [(a, b) for a in (18, 47, 256, 309, 675) for b in (5, 36, 144, 478)]
STRATEGIES = {"direct": "Answer with the number.", "steps": "Think step by step, then answer."}


@task
def sums(strategy: str) -> Task:
    """Return the task: twenty sums, asked in one of two ways."""
    samples = [Sample(id=f"{a}+{b}", input=f"{a} + {b} =", target=str(a + b)) for a, b in PAIRS]
    return Task(
        dataset=MemoryDataset(samples, name="sums"),
        solver=[system_message(STRATEGIES[strategy]), generate()],
        scorer=match(),
    )


def stand_in() -> Model:
    """Return a model that adds, and draws its slips by seed, question and how often that was asked."""
    asked = Counter()

    def answer(messages: list[Any], _tools: Any, _choice: Any, config: Any) -> ModelOutput:
        told, question = messages[0].text, messages[-1].text
        slips = random.Random(f"{config.seed} {told} {question} {asked[question]}")
        asked[question] += 1
        output = ModelOutput.from_content("adder", add(question, slips, 0.1 if "step" in told else 1 / 3))
        output.usage = ModelUsage()  # left out, the mock model counts tokens with a file from the network
        return output

    return get_model("mockllm/adder", custom_outputs=answer, memoize=False)


def add(question: str, slips: random.Random, often: float) -> str:
    """Return the sum in a question; a carry is forgotten with a probability."""
    first, second = question.removesuffix(" =").split(" + ")
    width = max(len(first), len(second)) + 1
    total, carry = "", 0
    for a, b in zip(reversed(first.zfill(width)), reversed(second.zfill(width)), strict=True):
        digit = int(a) + int(b) + carry
        carry = int(digit > 9 and slips.random() >= often)
        total = str(digit % 10) + total
    return total.lstrip("0")


def main(folder: Path, seeds: list[int]) -> None:
    """Evaluate both strategies under each seed, and keep of the logs what is short."""
    for seed in seeds:
        for strategy in STRATEGIES:
            (log,) = evaluate(
                sums(strategy),
                model=stand_in(),
                epochs=2,
                seed=seed,
                max_samples=1,
                log_dir=str(folder),
                log_format="eval",
                log_realtime=False,
                display="none",
            )
            if log.status != "success":
                sys.exit(str(log.error))
            whole = read_eval_log(log.location)
            whole.eval.revision = None
            for sample in whole.samples:
                sample.events, sample.messages, sample.attachments = [], [], {}
            write_eval_log(whole, log.location)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(seed) for seed in sys.argv[2:]])
