"""Scores of a language model: hooks against a loop and differences; and what is refused."""

import copy
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.lab.probe.tiny import draw, log_likelihood, loop_scores, tiny_model, transcripts
from tests.unit.stack import require_stack
from toolkit.errors import DamagedError, UsageError, VerificationError
from toolkit.lab.probe.lora import Scorer
from toolkit.lab.probe.recorded import Transcript

require_stack()

import torch  # noqa: E402
from peft import LoraConfig  # noqa: E402

# Longer and shorter than a chunk of linear attention (64), and than its convolution (4).
LENGTHS = (40, 7, 90, 21, 5)
SOME = transcripts(LENGTHS)
# Single precision; 3e-7 was measured, relative to a score's norm.
NEAR = 1e-6


@pytest.fixture(scope="module")
def shared() -> Any:
    return tiny_model()


@pytest.fixture
def model(shared: Any) -> Any:
    return copy.deepcopy(shared)


def stacked(scorer: Scorer, some: list[Transcript], batch: int = 8) -> np.ndarray:
    return np.stack(list(scorer.scores(some, batch)))


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(np.linalg.norm(found - expected, axis=-1) / np.linalg.norm(expected, axis=-1)))


@pytest.mark.parametrize("vision", [False, True], ids=["text", "with-vision"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_hooks_on_padded_batches_equal_the_loop(*, vision: bool, temperature: float) -> None:
    model = tiny_model(vision=vision)
    expected = loop_scores(model, SOME, temperature)
    with Scorer(model, temperature) as scorer:
        for batch in (1, 2, 5):
            assert relative(stacked(scorer, SOME, batch), expected) < NEAR


def test_half_precision_gives_single_precision_scores(model: Any) -> None:
    expected = stacked(Scorer(model), SOME)
    scorer = Scorer(model.bfloat16())
    found = stacked(scorer, SOME)
    assert found.dtype == np.float32
    assert relative(found, loop_scores(model, SOME)) < 0.02
    assert relative(found, expected) < 0.02


def test_only_tensors_with_a_gradient_are_coordinates_in_the_models_order() -> None:
    model = tiny_model(vision=True)
    scorer = Scorer(model)
    coordinates = scorer.identify(SOME[0])
    log_likelihood(model, SOME[0]).backward()
    present = [name for name, tensor in model.named_parameters() if tensor.grad is not None]
    assert list(coordinates.names) == present
    absent = [name for name in scorer.adapter.tensors if name not in present]
    assert len(absent) == 12
    assert all(".visual." in name for name in absent)


def test_the_adapters_hash_is_of_its_values_in_order(model: Any) -> None:
    digest = hashlib.sha256()
    for name, tensor in model.named_parameters():
        if "lora_" in name:
            digest.update(tensor.detach().numpy().astype("<f4").tobytes())
    with Scorer(model) as scorer:
        assert scorer.adapter.sha256 == digest.hexdigest()
    assert Scorer(model).finish() == digest.hexdigest()


def test_gradients_that_were_there_are_there_afterwards_and_no_hook_stays(model: Any) -> None:
    log_likelihood(model, SOME[0]).backward()
    before = {name: (t.grad, t.grad.clone()) for name, t in model.named_parameters() if t.grad is not None}
    assert len(before) == 30
    stacked(Scorer(model), SOME)
    for name, tensor in model.named_parameters():
        if name in before:
            assert tensor.grad is before[name][0]
            assert torch.equal(tensor.grad, before[name][1])
    assert not [name for name, module in model.named_modules() if module._forward_hooks]  # noqa: SLF001


def first(model: Any, part: str) -> Any:
    return next(tensor for name, tensor in model.named_parameters() if part in name)


def nudge(model: Any) -> None:
    """Change one value by its last bit, past what torch counts as a change."""
    flat = first(model, "lora_A").data.flatten()
    flat[5:6].view(torch.int32).add_(1)


def swap(model: Any) -> None:
    tensor = first(model, "lora_A").data
    tensor[:] = tensor[[1, 0, 2, 3]]


def scale_base(model: Any) -> None:
    with torch.no_grad():
        first(model, "embed_tokens").mul_(1.01)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (nudge, "the adapter changed between two passes"),
        (swap, "the adapter changed between two passes"),
        (lambda model: draw(model, 9), "the adapter changed between two passes"),
        (lambda model: first(model, "lora_A").requires_grad_(requires_grad=False), "not the one"),
        (lambda model: first(model, "embed_tokens").requires_grad_(), "not the one"),
        (scale_base, "a frozen weight"),
        (lambda model: model.train(), "training mode"),
    ],
    ids=["last-bit", "rows-swapped", "redrawn", "frozen", "thawed", "base-changed", "training-mode"],
)
def test_a_model_that_changes_between_passes_is_refused(model, change, problem) -> None:
    rows = Scorer(model).scores(SOME, batch=2)
    next(rows), next(rows)
    change(model)
    with pytest.raises(VerificationError, match=problem) as stopped:
        next(rows)
    assert stopped.value.where


@pytest.mark.parametrize("change", [nudge, scale_base], ids=["adapter", "base"])
def test_a_model_that_changed_after_the_last_pass_does_not_finish(model, change) -> None:
    scorer = Scorer(model)
    list(scorer.scores(SOME))
    change(model)
    with pytest.raises(VerificationError), scorer:
        pass
    with pytest.raises(UsageError, match="finished"):
        scorer.scores(SOME)


PART = "layers.1.mlp.down_proj.lora_B.default"


def test_a_tensor_that_starts_or_stops_taking_part_is_named(model: Any) -> None:
    name, module = next((n, m) for n, m in model.named_modules() if n.endswith(PART))
    for late in (True, False):
        scorer = Scorer(model)
        if late:
            scorer.identify(SOME[0])
        handle = module.register_forward_hook(lambda *passed: passed[-1].detach())
        if not late:
            assert f"{name}.weight" not in scorer.identify(SOME[0]).names
            handle.remove()
        with pytest.raises(VerificationError, match="take part") as stopped:
            list(scorer.scores(SOME))
        assert stopped.value.where.replace("lora_A", "lora_B") == f"{name}.weight"
        handle.remove()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_score_that_is_not_finite_is_refused_by_name(model: Any) -> None:
    """One token's embedding is not a number: only the transcript that has it is to blame."""
    bad = Transcript((4, 8, 88, 15), (False, True, False, True))
    fine = [one for one in SOME if 88 not in one.tokens]
    with torch.no_grad():
        first(model, "embed_tokens")[88] = float("nan")
    rows = Scorer(model).scores([*fine, bad])
    with pytest.raises(DamagedError, match="not finite") as stopped:
        list(rows)
    assert stopped.value.where.startswith(f"transcript {len(fine)} (4 tokens), base_model.model.")


@pytest.mark.parametrize("temperature", [0.0, float("nan"), float("inf")])
def test_a_temperature_that_is_not_positive_is_refused(model: Any, temperature: float) -> None:
    with pytest.raises(UsageError, match="temperature"):
        Scorer(model, temperature)


def test_there_has_to_be_something_to_score(model: Any) -> None:
    scorer = Scorer(model)
    with pytest.raises(UsageError, match="nothing to score"):
        scorer.scores([])
    with pytest.raises(UsageError, match="needs transcripts"):
        scorer.scores(SOME, 0)
    with pytest.raises(UsageError, match="does not know a token"):
        scorer.scores([Transcript((1, 97), (False, True))])
    with pytest.raises(UsageError, match="before a first pass"):
        _ = scorer.coordinates


def add_second(model: Any) -> Any:
    model.add_adapter("second", LoraConfig(r=4, target_modules="all-linear"))
    return model


def activate_both(model: Any) -> Any:
    add_second(model).base_model.set_adapter(["default", "second"])
    return model.eval()


UNFIT: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no-adapter": (lambda model: model.unload(), "one active LoRA adapter"),
    "two-active": (activate_both, "one active LoRA adapter"),
    "merged": (lambda model: model.merge_adapter(), "not applied on its own"),
    "disabled": (lambda model: model.base_model.disable_adapter_layers(), "not applied on its own"),
    "frozen": (lambda model: model.requires_grad_(requires_grad=False), "LoRA adapter is trainable"),
    "full": (lambda model: model.requires_grad_(), "something is trainable"),
    "training": (lambda model: model.train(), "training mode"),
    "checkpointing": (lambda model: model.gradient_checkpointing_enable(), "checkpoints its gradients"),
    "dora": (lambda _: tiny_model(use_dora=True), "something is trainable"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_model_without_one_plain_adapter_at_rest_is_refused(model: Any, name: str) -> None:
    change, problem = UNFIT[name]
    changed = change(model)
    with pytest.raises(UsageError, match=problem) as stopped:
        Scorer(changed or model)
    assert stopped.value.remedy


def test_a_weight_that_is_used_past_its_module_is_refused(model: Any) -> None:
    module = next(m for n, m in model.named_modules() if n.endswith(PART))
    module.register_forward_hook(lambda module, _, output: output + module.weight.sum())
    with pytest.raises(UsageError, match="another way") as stopped:
        Scorer(model).identify(SOME[0])
    assert stopped.value.where.endswith(f"{PART}.weight")
