"""A trajectory whose rollouts an engine samples in the model's place: their weights, as registered."""

from __future__ import annotations

import io
import math
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.unit.stack import require_stack

require_stack()

import torch  # noqa: E402

from tests.unit.lab.study import small_model as small  # noqa: E402
from tests.unit.lab.study.small_model import DESIGN, RUNS, STEPS, specification  # noqa: E402
from toolkit.errors import IncompleteError  # noqa: E402
from toolkit.lab.policies.language_model.conversation import Turn  # noqa: E402
from toolkit.lab.policies.language_model.vllm_engine import extend  # noqa: E402
from toolkit.lab.probe import language_model  # noqa: E402
from toolkit.lab.probing import run as probing  # noqa: E402
from toolkit.lab.probing.run import probe_all, probe_jobs  # noqa: E402
from toolkit.seeds import sample_seed, sampling_seed, units  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.lab.policies.language_model.chat import Chat
    from toolkit.lab.policies.language_model.conversation import Conversation
    from toolkit.lab.probing.run import MeasuredProbe, ProbeJob
    from toolkit.registers.arrow import Row

RUN, TEMPERATURE = RUNS[1], 0.7
APART = (-0.4, 0.0, 0.3, 1.2)
"""By how many nats a rollout is likelier under the model than the engine says; exp 1.2 is above 3."""
ABOVE = {"sequence_mask": 0.0, "sequence_truncate": 3.0}
CALL = "<call>no_such_tool<arg>item<is> chair"


def apart(seed: int) -> float:
    return APART[seed % len(APART)]


class Elsewhere:
    """Calls a tool, then says a word or two of its seed's; it errs on how likely that was, by a known number.

    Of its last token it cannot say it at all.
    """

    def __init__(self, model: Any, chat: Chat) -> None:
        self.model, self.chat = model, chat
        self.synchronized: list[float] = []

    def synchronize(self) -> None:
        self.synchronized.append(float(self._adapter()))

    def turns(self, talks: Sequence[Conversation]) -> list[Turn]:
        return [self._turn(talk) for talk in talks]

    def _turn(self, talk: Conversation) -> Turn:
        extend(talk, self.chat, 512)
        assert self.synchronized[-1] == float(self._adapter())
        end = self.chat.tokenizer.eos_token_id
        words = [8 + int(20 * number) for number in islice(units(talk.seed), 2 + talk.seed % 2)]
        said = [*(words if talk.turns else self.chat.tokenizer.encode(CALL)), end]
        start, talk.tokens = len(talk.tokens), talk.tokens + said
        with torch.no_grad():
            logits = self.model(input_ids=torch.tensor([talk.tokens])).logits[0, start - 1 : -1].double()
        own = (logits / TEMPERATURE).log_softmax(-1)[range(len(said)), said].tolist()
        talk.said |= enumerate(own, start)
        if talk.turns:
            talk.said[start] -= apart(talk.seed)
            talk.said[start + len(said) - 1] = math.nan
        return self.chat.turn(said, talk.tokens[:start], cut=False)

    def _adapter(self) -> Any:
        return sum(tensor.detach().abs().sum() for tensor in self.model.parameters() if tensor.requires_grad)


def jobs(base: Path, folder: Path, *changes: str) -> tuple[ProbeJob, ...]:
    changed = ("engine.kind=vllm", f"sampling.temperature={TEMPERATURE}", *changes)
    run = specification(base, RUN, *changed)
    return probe_jobs(DESIGN, [run], {RUN: small.adapter_rows(base, run, folder)}, (STEPS[1],))


@pytest.fixture(
    scope="module", params=["sequence_mask", pytest.param("sequence_truncate", marks=pytest.mark.slow)]
)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def probed(base: Path, level: str, tmp_path_factory: pytest.TempPathFactory) -> MeasuredProbe:
    engines: list[Elsewhere] = []

    def opened(adapted: Any, chat: Chat, recipe: Any, model: str) -> language_model.Sampler:
        assert model == str(base)
        engines.append(Elsewhere(adapted, chat))
        correction = recipe.loss.importance_sampling
        return language_model.Sampler(engines[0], engines[0].synchronize, correction.level, correction.max)

    folder = tmp_path_factory.mktemp("probe")
    probing._speaker.cache_clear()  # noqa: SLF001 - a worker that comes back has it open from before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probing, "open_sampler", opened)
        patch.setattr(language_model, "Recorded", small.graded)
        found = probe_all(folder, jobs(base, folder, f"loss.importance_sampling.level={level}"))
    assert len(engines) == 1
    assert len(set(engines[0].synchronized)) == 2, "the policy of every checkpoint"
    return found


def expected(trajectory: str, step: int, noise: str, level: str) -> list[list[float]]:
    """Return the weights of a set, task by task."""
    rollouts = {one.noise: one for one in DESIGN.sets}[noise]
    sampling = sampling_seed(DESIGN.root, trajectory, 0)
    off = [
        [
            apart(sample_seed(sampling, step, rollouts.name, (f"{rollouts.pool}:{task}", schedule, sample)))
            for schedule in range(rollouts.schedules)
            for sample in range(rollouts.per_schedule)
        ]
        for task in range(rollouts.tasks)
    ]
    return [[ABOVE[level] if nats > 1 else math.exp(nats) for nats in task] for task in off]


def gram_rows(probed: MeasuredProbe) -> list[Row]:
    return [row for raw in probed.evidence.values() for row in pq.read_table(io.BytesIO(raw)).to_pylist()]


def test_every_rollout_has_the_weight_that_its_tokens_have(probed: MeasuredProbe, level: str) -> None:
    """The difference of two turns, the answer of a tool between them; a token without a number has none."""
    rows = gram_rows(probed)
    seen = []
    for place in (("base", 0), (RUN, STEPS[1])):
        for noise in ("outcome", "transition"):
            found = [
                r["weights"] for r in rows if (r["trajectory"], r["step"], r["noise"]) == (*place, noise)
            ]
            assert np.array(found) == pytest.approx(np.array(expected(*place, noise, level)), rel=1e-4)
            seen += [weight for task in found for weight in task]
    assert {round(weight, 3) for weight in seen} == {
        *(round(math.exp(nats), 3) for nats in APART[:3]),
        ABOVE[level],
    }


def test_a_checkpoint_s_row_says_which_weights_it_met(probed: MeasuredProbe, level: str) -> None:
    for row in probed.rows["probe_checkpoints"]:
        weights = np.array(expected(row["trajectory"], row["step"], "outcome", level))
        used = weights[weights > 0]
        assert row["masked_rollouts"] == (weights == 0).sum()
        figures = [row["weight_mean"], row["weight_min"], row["weight_max"]]
        assert figures == pytest.approx([used.mean(), used.min(), used.max()], rel=1e-4)


def test_without_vllm_it_is_told_before_anything_is_sampled(base, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(IncompleteError, match="needs vLLM") as refused:
        probe_all(tmp_path / "probe", jobs(base, tmp_path, "sampling.max_turns=3"))
    assert "[gpu]" in (refused.value.remedy or "")
