"""`python -m tests.vllm.probed FOLDER MODEL`: the probe of a run that vLLM generates, of two checkpoints."""

import sys
from pathlib import Path

import pytest

from tests.unit.lab.study import small_model as small
from toolkit.lab.probing.run import probe_all, probe_jobs

RUN = small.RUNS[1]
STEP = small.STEPS[1]
SETTINGS = (
    "engine.kind=vllm",
    "engine.gpu_memory=0.12",
    # Close calls for the tokens, so that the engines' number formats show.
    "sampling.temperature=1.5",
    "sampling.max_completion_tokens=300",
    "sampling.context=4096",
)


def probe(folder: Path, model: str) -> None:
    """Probe the untrained policy and a checkpoint."""
    from vllm import _custom_ops

    run = small.specification(Path(model), RUN, *SETTINGS)
    with pytest.MonkeyPatch.context() as patch:
        # oneDNN packs weights and drops them: the adapter's could not be taken up.
        patch.setattr(_custom_ops, "_supports_onednn", False)
        rows = small.adapter_rows(Path(model), run, folder / "adapters")
        probe_all(folder / "probe", probe_jobs(small.DESIGN, [run], {RUN: rows}, (STEP,)))


if __name__ == "__main__":
    probe(Path(sys.argv[1]), sys.argv[2])
