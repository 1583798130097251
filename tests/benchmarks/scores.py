"""Scores of a language model by hooks: one pass beside a plain one over the same batch, and beside the loop.

A pass of the scorer is timed with all that it verifies: the adapter's sums, the frozen weights' versions,
which tensors take part, that all is finite. The plain pass is a forward and a backward of the same padded
batch, and gives the sum of the scores only. The three take turns; figures are medians. On a processor its
time on one thread is counted, on an accelerator wall time with the device waited for.
"""

import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from tests.benchmarks.harness import medians
from tests.unit.stack import INSTALL, PACKAGES
from toolkit.lab.probe.recorded import Transcript

ROUNDS = 7
TINY, PUBLISHED = (260, 180, 120, 240, 200, 90, 150, 220), (3000, 2400, 2700, 1800)


def clock() -> float:
    """Return the time of this process, or of the end of what it started on an accelerator."""
    import torch

    if not torch.cuda.is_available():
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def measure(name: str, model: Any, batch: Sequence[Transcript]) -> None:
    """Time the three ways and print one line."""
    from tests.unit.lab.probe.tiny import loop_scores
    from toolkit.lab.probe.lora import Scorer, batch_log_likelihood

    scorer = Scorer(model)
    size = scorer.identify(batch[0]).size

    def plain() -> None:
        model.zero_grad()
        batch_log_likelihood(model, batch, 1.0).backward()

    ways = {
        "plain": plain,
        "hooks": lambda: list(scorer.scores(batch, len(batch))),
        "loop": lambda: loop_scores(model, batch),
    }
    plain_s, hooks_s, loop_s = medians(ways, ROUNDS, clock).values()
    print(
        f"  {name:12} {len(batch):3} {size / 1e6:7.2f} {plain_s:8.3f} {hooks_s:8.3f} {loop_s:8.3f} "
        f"{hooks_s / plain_s:12.2f} {hooks_s / loop_s:11.2f}"
    )


def compare() -> None:
    """Measure the tiny model, and the published architecture where there is an accelerator."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        print(f"NO LANGUAGE MODEL WAS MEASURED: {', '.join(missing)} missing; run: {INSTALL}")
        return
    import torch

    from tests.unit.lab.probe.published import published_model
    from tests.unit.lab.probe.tiny import tiny_model, transcripts

    print(f"Scores by hooks: a pass over a batch with all verifications; medians of {ROUNDS} rounds")
    print("  model          N       P  plain s  hooks s   loop s  hooks/plain  hooks/loop")
    print("                         M")
    found = torch.cuda.is_available()
    measure("tiny", tiny_model().to("cuda" if found else "cpu"), transcripts(TINY))
    if found:
        measure("Qwen3.5-2B", published_model("cuda"), transcripts(PUBLISHED))
    else:
        print("  no accelerator is here: the published architecture was not measured")
