"""GPUs that a process sees, and what it may do with them. None is here: PyTorch is told their number."""

import sys
from collections.abc import Callable

import pytest

from tests.unit.stack import require_stack
from toolkit.errors import UsageError
from toolkit.lab.training.devices import DIVIDING, check_one_gpu, refuse_sharding, visible_gpus


@pytest.fixture
def see(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str | None], None]:
    """Return what has this process see so many GPUs, of those that a variable lists."""
    require_stack()
    import torch

    def seen(number: int, listed: str | None) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: number)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.delenv("WORLD_SIZE", raising=False)
        if listed is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)

    return seen


@pytest.mark.parametrize(
    ("number", "listed", "names"),
    [
        (2, None, ("0", "1")),
        (2, "6,GPU-8932", ("6", "GPU-8932")),
        (2, "6, 2, 9", ("6", "2")),  # CUDA stops at the first that is not there
        (0, "", ()),
        (0, None, ()),
    ],
)
def test_gpus_are_called_as_the_variable_calls_them(see, number, listed, names) -> None:
    see(number, listed)
    assert visible_gpus() == names


def test_without_pytorch_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert visible_gpus() == ()


def test_a_process_that_sees_several_gpus_trains_only_beside_others(see, monkeypatch) -> None:
    see(1, "5")
    check_one_gpu("c2-paired-s0")
    see(2, "5,6")
    with pytest.raises(UsageError, match="sees several GPUs") as error:
        check_one_gpu("c2-paired-s0")
    assert error.value.found == "2 GPUs: 5, 6"
    assert "CUDA_VISIBLE_DEVICES=5 before" in str(error.value.remedy)
    assert "accelerate launch --multi_gpu --num_processes 2" in str(error.value.remedy)
    monkeypatch.setenv("WORLD_SIZE", "2")
    check_one_gpu("c2-paired-s0")


@pytest.mark.parametrize(("name", "variable"), DIVIDING.items())
def test_weights_that_would_be_divided_are_refused(monkeypatch, name, variable) -> None:
    monkeypatch.setenv(variable, "false")
    refuse_sharding()
    monkeypatch.setenv(variable, "true")
    with pytest.raises(UsageError, match=f"{name} divides a model's weights"):
        refuse_sharding()
