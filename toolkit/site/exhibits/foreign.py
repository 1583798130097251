"""A page a foreign world that a study of the site plays in: what is the world's own, and what was added."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from toolkit.lab.tasks.pools import FOREIGN
from toolkit.lab.worlds.bfcl.world import DECLARED, VERSION
from toolkit.lab.worlds.world import worlds_of
from toolkit.registers.study import Study
from toolkit.site.material import Exhibit, Material
from toolkit.site.page import Page, study_page

NAME = "world-bfcl.html"
BFCL = ("bfcl_turns", "bfcl_scenarios")


def pages(material: Material) -> Iterator[Page]:
    """Yield the page of BFCL where a study plays in it."""
    studies = [case.study for case in material.cases if {*BFCL} & {*worlds_of(case.study)}]
    if not studies:
        return
    tools = [tool for tool in DECLARED.tools.values() if tool.kind != "control"]
    yield Page(
        NAME,
        "foreign.html",
        "BFCL v3 multi-turn as a world: its tools and tasks, and what was added",
        "world",
        {
            "package": f"bfcl-eval {VERSION}",
            "tools": tools,
            "kinds": Counter(tool.kind for tool in tools),
            "studies": [(study.name, study_page(study.name), _pools(study)) for study in studies],
        },
    )


EXHIBIT = Exhibit("toolkit.site.exhibits", pages)


def _pools(study: Study) -> list[dict[str, Any]]:
    """Return what each pool of a study holds, by world: tasks, planned calls, and writes among them."""
    rows = study.rows("task_pools")
    found = []
    for world in worlds_of(study):
        for pool, positions in FOREIGN[world].items():
            mine = [row for row in rows if row["pool"] == pool and row["index"] in positions]
            if mine:
                writes = sum(row["writes"] for row in mine)
                calls = writes + sum(row["reads"] for row in mine)
                found.append(
                    {"world": world, "pool": pool, "tasks": len(mine), "calls": calls, "writes": writes}
                )
    return found
