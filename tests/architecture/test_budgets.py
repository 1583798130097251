"""No room outgrows its budget of lines: `budgets.toml`, beside this."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

BUDGETS = tomllib.loads(Path(__file__).with_name("budgets.toml").read_text("utf-8"))


def lines_by_room(top: str) -> Counter[str]:
    """Return the raw lines of Python in each folder of a top folder, and of the files beside these."""
    count: Counter[str] = Counter()
    for path in sorted((CHECKOUT / top).rglob("*.py")):
        room, *rest = path.relative_to(CHECKOUT / top).parts
        count[room if rest else "files"] += len(path.read_bytes().splitlines())
    return count


@pytest.mark.parametrize("top", BUDGETS)
def test_every_room_keeps_within_its_budget(top: str) -> None:
    """A room that needs more lines raises its budget here, in a change that says what they buy."""
    lines, budgets = lines_by_room(top), BUDGETS[top]
    over = {
        room: f"{n} lines, {budgets.get(room, 0)} budgeted"
        for room, n in lines.items()
        if n > budgets.get(room, 0)
    }
    assert over == {}
    assert sorted(set(budgets) - set(lines)) == [], "no such room"
