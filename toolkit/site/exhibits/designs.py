"""A piece of the front page: the two designs drawn, and a table of rewards whose columns are luck."""

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any

from toolkit.estimators import luck_share
from toolkit.registers.arrow import Row
from toolkit.registers.study import Study
from toolkit.site.material import Exhibit, Material
from toolkit.site.page import Piece, luck_page, run_page

ROLLOUTS = 8  # of a group, as the paper trains
TABLES = "luck_share"
WIDTH = 340
LEFT = 62  # words stand there
STEP = 34  # from one rollout, schedule or sample to the next
SIDE = 24  # of a square of the table
NUMBERS = "₀₁₂₃₄₅₆₇₈₉"


def front(material: Material) -> Iterator[Piece]:
    """Yield the piece; without a table where no study has one."""
    study = next((case.study for case in material.cases if case.study.has(TABLES)), None)
    yield Piece("designs.html", {"designs": designs(), "table": study and typical_table(study)})


EXHIBIT = Exhibit("toolkit.site.exhibits", front=front)


def designs() -> str:
    """Return both designs as a drawing: eight rollouts under one schedule, and under one each."""
    at = [LEFT + STEP * i + STEP // 2 for i in range(ROLLOUTS)]
    middle = (at[0] + at[-1]) // 2
    shared = _box(middle, 34, 60, "ω") + "".join(f'<path d="M{middle} 46L{x} 89"/>' for x in at)
    own = [
        _mark(
            f"Independent: rollout {i} alone meets schedule {i}",
            f'{_box(x, 174, 28, f"ω{NUMBERS[i]}")}<path d="M{x} 186V229"/>{_rollout(x, 238)}',
        )
        for i, x in enumerate(at, 1)
    ]
    paired = _mark(
        f"Paired: all {ROLLOUTS} rollouts of a group meet one schedule",
        shared + "".join(_rollout(x, 98) for x in at),
    )
    words = [
        *(_words(0, y, name, "name") for y, name in ((12, "paired"), (152, "independent"))),
        *(_words(0, y, name) for y, name in ((38, "schedule"), (178, "schedules"))),
        *(_words(0, y, "rollouts") for y in (102, 242)),
    ]
    groups = f'<g class="paired">{paired}</g><g class="independent">{"".join(own)}</g>'
    return _drawing(250, "A group of rollouts in both designs", "".join(words) + groups)


def typical_table(study: Study) -> dict[str, Any] | None:
    """Return the first table of rewards whose luck share is nearest to the mean of those that have one."""
    tables: dict[tuple[Any, ...], list[Row]] = {}
    for row in study.rows(TABLES):
        place = (row["run_id"], row["step"], row["pool"], row["regime"], row["task"])
        tables.setdefault(place, []).append(row)
    split = {place: luck_share([r["observed_rewards"] for r in rows]) for place, rows in tables.items()}
    shares = {place: parts.share for place, parts in split.items() if parts.share is not None}
    if not shares:
        return None
    mean = fsum(shares.values()) / len(shares)
    run, step, pool, regime, task = place = min(shares, key=lambda place: abs(shares[place] - mean))
    columns = sorted(tables[place], key=lambda row: row["schedule"])
    rewards = [(row["schedule"], row["observed_rewards"]) for row in columns]
    samples = len(rewards[0][1])
    return {
        "study": study.name,
        "luck_page": luck_page(study.name),
        "run": run,
        "run_page": run_page(study.name, run),
        "where": f"step {step}, {pool} task {task}, {regime.replace('_', ' ')}",
        "drawing": _table(rewards),
        "schedules": len(rewards),
        "samples": samples,
        "always": [schedule for schedule, column in rewards if all(column)],
        "never": [schedule for schedule, column in rewards if not any(column)],
        "share": shares[place],
        "mean": mean,
        "defined": len(shares),
    }


def _table(rewards: Sequence[tuple[int, Sequence[bool]]]) -> str:
    samples = len(rewards[0][1])
    bottom = 26 + SIDE * samples
    words = [
        _words(0, 16, "schedule"),
        _words(0, 26 + SIDE // 2 + 4, "samples"),
        _words(0, bottom + 16, "successes"),
    ]
    columns = []
    for i, (schedule, column) in enumerate(rewards):
        x = LEFT + STEP * i + STEP // 2
        squares = {
            kind: "".join(
                f"M{x - SIDE // 2 + 1} {26 + SIDE * k}h{SIDE - 3}v{SIDE - 3}h-{SIDE - 3}z"
                for k, reward in enumerate(column)
                if bool(reward) == (kind == "won")
            )
            for kind in ("won", "lost")
        }
        drawn = "".join(f'<path class="{kind}" d="{d}"/>' for kind, d in squares.items() if d)
        label = f"Schedule {schedule}: {sum(column)} of {samples} policy samples succeed"
        columns.append(
            _mark(
                label, f"{_words(x, 16, schedule, 'mid')}{drawn}{_words(x, bottom + 16, sum(column), 'mid')}"
            )
        )
    return _drawing(bottom + 24, "Rewards by schedule", "".join(words + columns))


def _drawing(height: int, label: str, parts: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="group" aria-label="{label}">{parts}</svg>'


def _mark(label: str, parts: str) -> str:
    return f'<g class="mark" role="img" aria-label="{label}">{parts}</g>'


def _words(x: int, y: int, words: object, kind: str = "side") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{words}</text>'


def _box(x: int, y: int, width: int, words: str) -> str:
    box = f'<rect x="{x - width // 2}" y="{y - 12}" width="{width}" height="24" rx="4"/>'
    return box + _words(x, y + 4, words, "mid")


def _rollout(x: int, y: int) -> str:
    return f'<circle cx="{x}" cy="{y}" r="9"/>'
