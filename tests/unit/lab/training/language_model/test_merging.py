"""Weights for the engine: what it is sent is merged, and the base stays as it was, to the bit."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.lab.training.language_model.small_model import specified, tiny_model
from tests.unit.lab.training.language_model.trained import opened
from toolkit.lab.training.language_model.session import restore_base

SYNCS = 20


def adapted(tokenizer: Any) -> Any:
    """Return a model in half precision with an adapter in single, as the paper's runs have it."""
    import torch
    from peft import LoraConfig, get_peft_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        base = tiny_model(tokenizer).to(torch.bfloat16)
        return get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"))


def base_of(model: Any) -> dict[str, Any]:
    return {name: p.detach().clone() for name, p in model.named_parameters() if "lora_" not in name}


def sent_by(model: Any) -> Iterator[tuple[str, Any]]:
    """Walk the weights as TRL does for every synchronization."""
    from trl.generation.vllm_generation import VLLMGeneration

    generation = object.__new__(VLLMGeneration)
    generation.model = model
    generation.mode = "colocate"
    generation._dist = SimpleNamespace(gather_params=lambda _: nullcontext(), is_fsdp=False)
    yield from ((name, tensor.clone()) for name, tensor in generation._iter_named_params())


def synchronized(model: Any) -> None:
    """Synchronize many times, the adapter moving in between."""
    import torch

    generator = torch.Generator().manual_seed(2)
    for _ in range(SYNCS):
        for name, tensor in model.named_parameters():
            if "lora_" in name:
                tensor.data += 0.01 * torch.randn(tensor.shape, generator=generator)
        for _ in sent_by(model):
            pass


def changed(before: dict[str, Any], after: dict[str, Any]) -> tuple[int, int]:
    return sum(int((before[name] != after[name]).sum()) for name in before), sum(
        tensor.numel() for tensor in before.values()
    )


def test_many_synchronizations_leave_no_trace_in_the_base(tokenizer: Any) -> None:
    """Without the restoration a part of the weights of this very model has drifted."""
    plain, model = adapted(tokenizer), adapted(tokenizer)
    restore_base(model)
    for each, drifts in ((plain, True), (model, False)):
        before = base_of(each)
        synchronized(each)
        differing, total = changed(before, base_of(each))
        assert (differing > 0.005 * total) if drifts else differing == 0, (differing, total)


def test_a_session_s_model_restores_its_base(model: str, tmp_path: Path) -> None:
    opened_model = opened(model, tmp_path, specified(model), []).trainer.model
    before = base_of(opened_model)
    synchronized(opened_model)
    assert changed(before, base_of(opened_model))[0] == 0


def test_merging_twice_keeps_the_first_base(tokenizer: Any) -> None:
    model = adapted(tokenizer)
    restore_base(model)
    for name, tensor in model.named_parameters():
        if "lora_" in name:
            tensor.data.fill_(0.05)
    before = base_of(model)
    model.merge_adapter()
    with pytest.warns(UserWarning, match="already merged"):
        model.merge_adapter()
    assert changed(before, base_of(model))[0] > 0
    model.unmerge_adapter()
    assert changed(before, base_of(model))[0] == 0
