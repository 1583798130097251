"""Generation depends on the world seed alone: no order of generation, no hash seed, no global state."""

import os
import subprocess
import sys

from tests.conftest import CHECKOUT
from toolkit.tasks.generator import generate

SCRIPT = (
    "from toolkit.tasks.generator import generate\n"
    "from toolkit.tasks.task import task_sha256\n"
    "print(*(task_sha256(generate('test', n, n)) for n in range(20)))\n"
)


def test_the_order_of_generation_does_not_matter() -> None:
    forwards = [generate("test", number, number) for number in range(12)]
    backwards = [generate("test", number, number) for number in reversed(range(12))]
    assert forwards == backwards[::-1]


def test_the_hash_seed_does_not_matter() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(printed) == 1
