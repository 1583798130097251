"""Secondary analyses of the published study, from its registers: none of them changes a verdict.

python run.py
python run.py --json
"""

from __future__ import annotations

import json
import sys
from typing import Any

from findings import LABEL, findings
from toolkit.places import find_home
from toolkit.registers.study import open_study

MOST = 16
"""Members of a list that are shown to people; --json has all."""


def main() -> None:
    """Print every finding, for people or as one JSON document."""
    study = open_study(find_home().study_folder("published"))
    computed = findings(study)
    if "--json" in sys.argv[1:]:
        entries = [finding.as_dict() for finding in computed]
        print(json.dumps({"study": study.name, "label": LABEL, "findings": entries}, indent=2))
        return
    for finding in computed:
        print(f"{finding.title}   {finding.id}   ({LABEL})")
        width = max(map(len, finding.numbers), default=0)
        for name, value in finding.numbers.items():
            print(f"  {name.replace('_', ' '):{width}}  {_plain(value)}")
        print(f"  {finding.sentence}\n  from: {finding.source}\n")


def _plain(value: Any) -> str:
    if isinstance(value, list):
        more = f"  … {len(value)} in all" if len(value) > MOST else ""
        return "  ".join(map(_plain, value[:MOST])) + more or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
