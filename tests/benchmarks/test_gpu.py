"""The script for a GPU, tiny and on a processor; and the page says what was measured, or that nothing was."""

import json
import sys
from inspect import unwrap
from types import ModuleType
from typing import Any

import pytest

from tests.benchmarks import gpu, gpu_parts
from tests.benchmarks.gpu_parts import PARTS, TINY
from tests.unit.lab.probe import published, tiny
from tests.unit.stack import require_stack, require_trainer


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> object:
    """Run the script in this process, one part of it; return what it exits with."""
    monkeypatch.setattr(gpu, "PARTS", {"peaks": gpu_parts.peaks})
    monkeypatch.setattr(sys, "argv", ["gpu", *options])
    with pytest.raises(SystemExit) as stop:
        gpu.main()
    return stop.value.code


@pytest.mark.slow
def test_the_script_measures_a_part_in_a_process_of_its_own(monkeypatch, capsys) -> None:
    require_stack()
    assert run(monkeypatch, "--cpu", "--tiny", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["peaks"] == "measured in this run"
    assert [figure["name"] for figure in result["parts"]["peaks"]["figures"]] == ["copy", "matrix product"]
    assert all(figure["value"] > 0 for figure in result["parts"]["peaks"]["figures"])
    assert "NO GPU" in gpu.text_of(result)


def test_without_cuda_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    require_stack()
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "there is no CUDA device here" in str(run(monkeypatch))


def part(name: str) -> dict[str, gpu_parts.Figure]:
    """Measure a part on a processor; return its figures."""
    require_trainer()
    figures = PARTS[name](TINY, "cpu")
    assert all(figure.value > 0 for figure in figures if figure.phases)
    return {figure.name: figure for figure in figures}


@pytest.mark.slow
def test_scores_are_those_of_every_coordinate_whatever_pads() -> None:
    found = part("scores")
    maps = gpu_parts.linear_maps(TINY.text)
    assert found["coordinates"].value == gpu_parts.adapter_parameters(maps, TINY.lora["r"])
    assert found["distance of a score alone and in a padded batch"].value < 0.05


def test_merging_drifts_unless_the_base_is_restored() -> None:
    drifted, restored, _ = part("merging").values()
    assert drifted.value > 0.005
    assert restored.value == 0


@pytest.mark.slow
def test_a_step_is_trained_and_its_time_divided() -> None:
    found = part("training")
    assert 0 < found["share of time outside generation"].value < 1
    said = found["generation by transformers"].count
    assert said == 2 * 8 * 12  # two steps of eight rollouts, which a model without meaning never ends
    assert found["outside generation"].count > said


def test_what_no_longer_fits_is_said_to_be_left_out() -> None:
    """The first part is cut while Python starts; no other is begun."""
    parts = gpu.measured(0.001, "--cpu", "--tiny")
    assert parts == {name: {"left_out": "the 0.001 seconds were over"} for name in PARTS}
    text = gpu.text_of(gpu.document({"gpu": None, "date": "", "stack": ""}, parts))
    assert text.count("left out: the 0.001 seconds were over") == len(PARTS)


def test_kernels_that_compute_something_else_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of fla, which needs a GPU: the reference, and the reference with a hundredth added."""
    require_stack()
    from transformers.models.qwen3_5 import modeling_qwen3_5 as modeling

    def rule(*inputs: Any, **options: Any) -> Any:
        output, state = unwrap(modeling.torch_chunk_gated_delta_rule)(*inputs, **options)
        return output.float() * factor, state

    module = ModuleType("fla.ops.gated_delta_rule")
    module.chunk_gated_delta_rule = rule  # type: ignore[attr-defined]
    for name in ("fla", "fla.ops", module.__name__):
        monkeypatch.setitem(sys.modules, name, module)
    for factor in (1.0, 1.01):
        figures = gpu_parts.kernels(TINY, "cpu")
        distances = [each.value for each in figures if each.name.startswith("fla") and not each.phases]
        assert distances == pytest.approx([factor - 1, factor - 1], abs=0.003)


def figure(**facts: Any) -> dict[str, Any]:
    return {"value": 4.0, "count": 0, "phases": [], "bound": None, "basis": "", **facts}


def test_a_bound_is_the_longer_of_moving_and_reckoning_phase_by_phase() -> None:
    phases = [(100.0, 1.0), (1.0, 2000.0)]  # 1 s at 100 a second; 2 s at 1000
    found = gpu.bounded(figure(phases=phases), 100, 1000)
    assert (found["bound"], found["share"], found["basis"]) == (3.0, 0.75, "arithmetic + memory")
    found = gpu.bounded(figure(phases=phases, count=30), 100, 1000)
    assert (found["bound"], found["share"]) == (10.0, 0.4)


def test_peaks_are_the_card_s_where_they_are_known() -> None:
    measured = [figure(value=1.0), figure(value=2.0)]
    assert gpu.peaks_of("NVIDIA H200", measured) == (4.8e12, 9.894e14, "data sheet")
    assert gpu.peaks_of("another", measured) == (1e9, 2e12, "measured in this run")


def test_a_pass_needs_no_more_operations_than_torch_counts() -> None:
    """Torch counts attention between tokens, too: of few tokens it is little beside wide maps."""
    require_stack()
    from torch.utils.flop_counter import FlopCounterMode

    from toolkit.lab.probe.lora import batch_log_likelihood

    text = {**TINY.text, "hidden_size": 512, "intermediate_size": 768, "vocab_size": 97}
    model = published.published_model("cpu", text, TINY.lora).float()
    batch = tiny.transcripts((40,))
    with FlopCounterMode(display=False) as counter:
        batch_log_likelihood(model, batch, 1.0).backward()
    _, least = gpu_parts.needed(text, TINY.lora["r"], 40, sum(batch[0].chosen), 1)
    assert 0.9 * counter.get_total_flops() < least <= counter.get_total_flops()


def test_the_page_says_what_was_measured_or_that_nothing_was() -> None:
    assert gpu.PAGE.read_text(encoding="utf-8") == gpu.page(gpu.kept())
    assert all(result["machine"]["gpu"] for result in gpu.kept().values())
    assert "never run" in gpu.page({})
    parts = {name: {"figures": []} for name in PARTS}
    parts["peaks"] = {"figures": [figure(name=name, unit="") for name in ("copy", "product")]}
    machine = {"gpu": "NVIDIA H200", "date": "2030-01-01", "stack": "torch 9"}
    page = gpu.page({"my machine": gpu.document(machine, parts)})
    assert "never run" not in page
    assert "## my machine\n\nNVIDIA H200, 2030-01-01. torch 9. Peaks: data sheet." in page
    assert "| peaks | copy | 4 | 4800 | 0.001 | data sheet |" in page
