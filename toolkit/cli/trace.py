"""Printing an episode for people: its prompt, its calls with the faults they met, its outcome."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from toolkit.backoffice.records import plain
from toolkit.cli.output import console, visible

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from toolkit.episodes.desk import CallRecord
    from toolkit.episodes.episode import Episode

LONGEST = 56
SELF_EVIDENT = frozenset({"temporarily_unavailable", "outage", "timeout"})


def print_episode(episode: Episode, *, full: bool = False) -> None:
    """Print an episode; `full` prints event keys, and every answer whole."""
    from rich.panel import Panel
    from rich.text import Text

    out = console()
    title = f"{episode.task.task_id}   {episode.regime.name}   schedule seed {episode.schedule.seed}"
    out.print(Panel(Text(episode.task.prompt), title=title, title_align="left", expand=False))
    if episode.trace is not None:
        out.print(_calls(episode.trace, full=full))
    for line in _outcome(episode):
        out.print(line)


def describe(answer: dict[str, Any]) -> str:
    """Return an answer in one line."""
    if "error" in answer:
        error = answer["error"]
        if "retry_after" in error:
            return f"{error['code']}, {error['retry_after']} s"
        code: str = error["code"]
        return code if code in SELF_EVIDENT else f"{code}: {error['message']}"
    said = {name: value for name, value in answer.items() if name not in {"revision", "next_offset"}}
    if not said:
        return f"done, revision {answer['revision']}"
    return ", ".join(_short(name, value) for name, value in said.items() if value is not False)


def _short(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{name}: {len(value)}"
    if isinstance(value, dict):
        known = ("name", "status", "refundable_cents", "pick_list")
        return " ".join([f"{name}:", *(f"{key} {value[key]}" for key in known if value.get(key) is not None)])
    return name if value is True else f"{name} {value}"


def _side(value: Any) -> str:
    return visible(json.dumps(plain(value), ensure_ascii=False))


def _calls(trace: tuple[CallRecord, ...], *, full: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="right", style="dim")
    for heading in ("call", *(("event key",) if full else ()), "fault", "answer"):
        table.add_column(heading, overflow="fold")
    number = 0
    for call in trace:
        number += call.charged
        answer = visible(json.dumps(call.answer, ensure_ascii=False) if full else describe(call.answer))
        failed = "error" in call.answer
        table.add_row(
            str(number) if call.charged else "",
            Text(_said(call, full=full)),
            *((_key(call),) if full else ()),
            _mark(call),
            Text(answer, style="red" if failed else ""),
        )
    return table


def _said(call: CallRecord, *, full: bool) -> str:
    if not isinstance(call.arguments, dict):
        return visible(f"{call.tool}({call.arguments!r})")
    said = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    text = visible(f"{call.tool}({said})")
    return text if full or len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _key(call: CallRecord) -> str:
    return "" if call.key is None else visible(" ".join(map(str, (call.tool, *call.key))))


def _mark(call: CallRecord) -> Text:
    from rich.text import Text

    if call.fault is not None:
        return Text(f"⚡ {call.fault}", style="bold yellow")
    return Text(f"· {call.blocked_by}" if call.blocked_by else "", style="yellow")


def _outcome(episode: Episode) -> list[Text]:
    from rich.text import Text

    from toolkit.episodes.grading import differences

    colour = "green" if episode.true_success else "red"
    lines = [
        Text.assemble(
            "\ntrue success ",
            ("yes" if episode.true_success else "no", f"bold {colour}"),
            f"   observed reward {episode.observed_reward}" + (" (flipped)" if episode.flipped else ""),
            f"   {episode.calls} of {episode.task.budget} calls   {episode.ended.replace('_', ' ')}",
        )
    ]
    if episode.exposures:
        landed = [e.fault if e.changed else f"{e.fault} (without effect)" for e in episode.exposures]
        lines.append(Text(f"faults: {', '.join(landed)}"))
    for code, count in episode.called_for.items():
        lines.append(Text(f"{code.replace('_', ' ')}: {episode.recovered.get(code, 0)} of {count}"))
    lines += [
        Text(f"{d.record} {d.field}: expected {_side(d.expected)}, found {_side(d.found)}", style="red")
        for d in differences(episode.task, episode.world)
    ]
    return lines
