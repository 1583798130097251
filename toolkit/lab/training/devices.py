"""GPUs and processes: a job has one GPU, and a run on several has a process for each of them."""

import os
from datetime import timedelta
from typing import Any

from toolkit.errors import UsageError

ANEW, KEPT = "anew", "kept"
"""What becomes of a process when its job on a GPU is done: the next job has another, or the same."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
DIVIDING = {
    "FSDP": "ACCELERATE_USE_FSDP",
    "DeepSpeed": "ACCELERATE_USE_DEEPSPEED",
    "Megatron-LM": "ACCELERATE_USE_MEGATRON_LM",
}
"""What divides weights, and the variable by which accelerate tells its processes."""
PATIENCE = timedelta(hours=6)
"""How long a process waits for another, which may have a longer share of an evaluation. Where one ends, the
launcher ends the others; libraries would give up after ten minutes."""


def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs that this process sees, as `CUDA_VISIBLE_DEVICES` calls them; none without PyTorch."""
    try:
        import torch
    except ImportError:
        return ()
    number = torch.cuda.device_count()
    listed = os.environ.get(VISIBLE)
    names = [str(at) for at in range(number)] if listed is None else listed.split(",")
    return tuple(name.strip() for name in names[:number])


def launched_together() -> int:
    """Return how many processes a launcher started together with this one, itself among them."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first_process() -> bool:
    """Return whether this is the one that writes, and speaks, of processes that were launched together."""
    return os.environ.get("RANK", "0") == "0"


def connected_processes(*, cpu: bool) -> Any:
    """Return accelerate's state of the processes that train together; the first call connects them."""
    from accelerate import PartialState

    if cpu:
        # Accelerate would number processors, too, and PyTorch then cannot read an optimizer's state back.
        os.environ.setdefault("ACCELERATE_TORCH_DEVICE", "cpu")
    return PartialState(cpu=cpu, timeout=PATIENCE)


def refuse_sharding() -> None:
    """Refuse processes that were launched to divide a model's weights among them."""
    for name, variable in DIVIDING.items():
        if os.environ.get(variable, "false").lower() in {"1", "true"}:
            raise UsageError(
                f"{name} divides a model's weights among processes, which no run here was ever trained with",
                expected="a whole copy of the model in each process",
                found=f"{variable}={os.environ[variable]}",
                remedy="accelerate launch --multi_gpu, or with examples/beyond-one-machine/accelerate.yaml; "
                "for a model that one GPU cannot hold there is no way yet",
            )


def check_one_gpu(run_id: str) -> None:
    """Refuse to train a run in a process that sees several GPUs, unless several were launched together."""
    seen = visible_gpus()
    if len(seen) > 1 and launched_together() == 1:
        raise UsageError(
            f"{run_id} would be trained in a process that sees several GPUs",
            expected="one GPU, or one process a GPU",
            found=f"{len(seen)} GPUs: {', '.join(seen)}",
            remedy=f"on one: {VISIBLE}={seen[0]} before the command; on all: accelerate launch --multi_gpu "
            f"--num_processes {len(seen)} -m toolkit train …; a run on each: toolkit study run",
        )
