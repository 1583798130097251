"""Play the published runs' training steps with the scripted agent: writes `source/reference_steps.csv`.

Run as `python -m tests.golden.measure_reference_steps`; minutes. Then: `toolkit registers build published`.
"""

import csv
import sys

from tests.conftest import CHECKOUT
from toolkit.cases import open_study
from toolkit.lab.worlds.published.audit import Reference
from toolkit.places import Home
from toolkit.registers.schema import REFERENCE_STEPS

FILE = CHECKOUT / "registers/published/source/reference_steps.csv"


def main() -> None:
    """Play every step of every run under faults."""
    study = open_study("published", Home(CHECKOUT))
    reference = Reference(study.rows("runs"))
    under_faults = {run["run_id"] for run in study.rows("runs") if run["fault_rate"]}
    columns = [
        column.name for column in REFERENCE_STEPS.columns if column.name not in ("condition", "arm", "seed")
    ]
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in study.rows("training_steps"):
            if row["run_id"] in under_faults:
                print(row["run_id"], row["step"], file=sys.stderr)
                writer.writerow(reference.step(row))


if __name__ == "__main__":
    main()
