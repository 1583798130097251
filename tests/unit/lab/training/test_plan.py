"""Memory, time and operations of a plan: against what was recorded, and against sums by hand."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.lab.training.architecture import find_model
from toolkit.lab.training.memory import estimate_memory, gpus_needed
from toolkit.lab.training.plan import (
    Range,
    Rate,
    RunCounts,
    makespan,
    measured_rate,
    most_operations,
    rate_of_step,
    rate_of_tokens,
    rescaled,
    run_hours,
    schedule,
)
from toolkit.lab.training.recipe import load_recipe

PAPER = load_recipe("qwen3.5-2b")
QWEN, LARGER = find_model("Qwen/Qwen3.5-2B").architecture, find_model("dense-70b").architecture
GIGA = 10**9
# As the makers print them.
MEMORY = {"H100": 80 * GIGA, "MI300X": 192 * GIGA}


def run(rollouts: int = 100, evaluated: int = 20) -> RunCounts:
    return RunCounts("a", "C2", "paired", 0, 1, 10, 12, rollouts, evaluated, 0, 0, (10,))


def test_the_estimated_memory_holds_the_peaks_that_the_published_runs_recorded(published: Any) -> None:
    for row in published.rows("runs"):
        memory = estimate_memory(PAPER, QWEN, MEMORY[row["accelerator"]])
        assert memory.low <= row["peak_memory_gb"] * GIGA <= memory.high, row["run_id"]
        assert memory.verdict == "fits"


def test_a_small_gpu_does_not_hold_the_paper_s_recipe() -> None:
    assert estimate_memory(PAPER, QWEN, 24 * GIGA).verdict == "does_not_fit"
    assert estimate_memory(PAPER, QWEN, 64 * GIGA).verdict == "may_fit"


def test_without_vllm_the_caches_of_a_whole_step_are_counted() -> None:
    recipe = load_recipe("qwen3.5-2b", changes=["engine.kind=transformers"])
    memory = estimate_memory(recipe, QWEN, 80 * GIGA)
    # 192 sequences of 12,288 tokens at 12,288 bytes, and the states of 18 layers.
    states = 18 * (16 * 128 * 128 * 4 + 6144 * 3 * 2)
    assert memory.parts[-1].low == 192 * (12_288 * 12_288 + states)
    assert memory.sequences is None


@pytest.mark.parametrize(("accelerator", "gpus"), [(80, 8), (192, 2), (1000, 1)])
def test_a_dense_70b_policy_needs_several_gpus(accelerator: int, gpus: int) -> None:
    # Two copies of 141 GB of weights alone are 282 GB: more than three GPUs of 80, less than two of 192.
    assert gpus_needed(PAPER, LARGER, accelerator * GIGA) == gpus


def test_a_rate_is_what_was_measured_or_an_upper_end_alone() -> None:
    assert measured_rate([(100.0, 50), (300.0, 100)], "x").seconds == Range(2.0, 400 / 150, 3.0)
    for gpus, each in ((1, 2.0), (8, 16.0)):
        assert rate_of_step(PAPER, 384.0, gpus).seconds == Range(None, None, each)
    assert rate_of_tokens(PAPER, 1536.0).seconds == Range(None, None, 4.0)


def test_hours_of_a_run_are_its_episodes_at_the_rate() -> None:
    rate = Rate(Range(30.0, 60.0, 90.0), "x")
    assert run_hours(run(), rate) == Range(1.0, 2.0, 3.0)
    assert run_hours(run(), Rate(rate.seconds, "x", gpus=2)) == Range(0.5, 1.0, 1.5)


def test_another_model_s_rate_lies_between_as_long_a_run_and_as_many_operations() -> None:
    rate = Rate(Range(1.0, 2.0, 3.0), "x")
    found = rescaled(rate, QWEN, LARGER, 8)
    # 69.50 billion parameters are multiplied with a token, instead of 1.881.
    assert found.seconds.high == pytest.approx(3.0 * 69.502 / 1.88128, rel=1e-4)
    assert found.seconds.low == 8.0
    assert found.seconds.mean is None
    smaller = rescaled(rate, LARGER, QWEN, 1)
    assert smaller.seconds.low == pytest.approx(1.88128 / 69.502, rel=1e-4)
    assert smaller.seconds.high == 3.0


def test_runs_that_fit_on_no_gpu_have_no_duration() -> None:
    found = schedule([run()], Rate(Range(1.0, 1.0, 1.0), "x", gpus=8), 7)
    assert (found.slots, found.hours, found.gpu_hours) == (0, None, None)


def test_runs_are_whole_so_more_gpus_than_runs_help_no_more() -> None:
    rate = Rate(Range(30.0, 60.0, 90.0), "x")
    one, many = schedule([run(), run()], rate, 1), schedule([run(), run()], rate, 64)
    assert one.hours == Range(2.0, 4.0, 6.0)
    assert many.hours == Range(1.0, 2.0, 3.0)
    assert many.slots == 2
    assert one.gpu_hours == many.gpu_hours == Range(2.0, 4.0, 6.0)


def test_the_longest_jobs_go_first() -> None:
    # Graham's example: in the order given, two slots would end at 4.
    assert makespan([1.0, 1.0, 2.0], 2) == 2.0


@settings(max_examples=50)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_the_makespan_is_within_graham_s_bound_of_the_best(jobs: list[int], slots: int) -> None:
    best = min(
        max(sum(job for job, at in zip(jobs, places, strict=True) if at == slot) for slot in range(slots))
        for places in product(range(slots), repeat=len(jobs))
    )
    assert best <= makespan(map(float, jobs), slots) <= best * (4 / 3 - 1 / (3 * slots)) + 1e-9


def test_operations_are_two_a_parameter_token_and_pass() -> None:
    # 100 rollouts of 12,288 tokens, five passes; 20 episodes, one; 1,881,276,416 parameters.
    expected = (100 * 5 + 20) * 12_288 * 2 * 1_881_276_416
    assert most_operations([run()], PAPER, QWEN) == expected
