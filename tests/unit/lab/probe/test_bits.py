"""A probe is the same bytes on every machine: other cores of the BLAS, other threads, other instructions."""

import hashlib
import os
import subprocess
import sys

import pytest

from tests.unit.lab.probe import small
from toolkit.lab.probe.design import index_rows

TABLES = ("probe_gram", "probe", "probe_intervals", "probe_clean_tasks", "probe_diagnostic_tasks")
# Which features NumPy knows, and which a processor has, differs: what it refuses to switch off is not tried.
MACHINES = {
    "prescott, one thread": {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"},
    "haswell, two threads": {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"},
    "no AVX-512": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
    "no AVX2": {
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "OPENBLAS_CORETYPE": "Prescott",
    },
}
PRINT = "from tests.unit.lab.probe.test_bits import digests\nprint(digests())"


def digests() -> str:
    """Return table → SHA-256 of its rows, every float by its shortest exact decimal."""
    rows, _ = small.derived(small.measured())
    drifts = [row for evidence in small.measured().values() for row in evidence.drifts]
    made = {"probe_gram": small.gram_rows(), "probe_drift": drifts, "probe_indices": index_rows(small.DESIGN)}
    rows, names = {**rows, **made}, (*TABLES, "probe_drift", "probe_indices")
    return "\n".join(f"{name} {hashlib.sha256(repr(rows[name]).encode()).hexdigest()}" for name in names)


FAST = "no AVX2"


@pytest.mark.parametrize(
    "machine", [pytest.param(m, marks=() if m == FAST else pytest.mark.slow) for m in MACHINES]
)
def test_every_table_has_the_same_bytes_on_every_machine(machine: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRINT],
        env=os.environ | MACHINES[machine],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == digests()
