"""`toolkit episode`: play one task under one schedule, and look at what happened."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from toolkit.cli.options import (
    STUDY,
    argument,
    flag,
    group,
    json_option,
    offer_runs,
    offer_studies,
    option,
    together,
)
from toolkit.cli.output import Styled, bold, coloured, print_json, print_table, remark, remarks, say_line
from toolkit.errors import DamagedError, IncompleteError, UsageError, did_you_mean
from toolkit.lab.backoffice.parameters import LONGEST_WORD
from toolkit.lab.backoffice.records import plain
from toolkit.lab.commands.options import offer_regimes
from toolkit.noise.commands import Seed
from toolkit.structs import Document, Verified, about

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TextIO

    from toolkit.lab.episodes.desk import CallRecord
    from toolkit.lab.tasks.task import Task
    from toolkit.lab.worlds.world import AnyEpisode
    from toolkit.noise.session import Call

SCHEDULES = 1 << 32


class FieldDifference(Document, frozen=True):
    """A field in which the final world is not as expected."""

    record: Annotated[str, about("Identifier; of a ticket, the customer's.")]
    field: Annotated[str, about("`record` where a whole record is missing or too much.")]
    expected: Annotated[object, about("Null: nothing.")]
    found: Annotated[object, about("Null: nothing.")]


class LandedFault(Document, frozen=True):
    """A fault that landed."""

    call: Annotated[int, about("Number of the call, from 0.")]
    tool: Annotated[str, about("Of the event key.")]
    resource: Annotated[str, about("Of the event key.")]
    repeat: Annotated[int, about("Of the event key.")]
    fault: Annotated[str, about("Its type.")]
    changed: Annotated[bool, about("Whether the answer differs from what it would have been.")]


class Recovery(Document, frozen=True):
    """How often a recovery was called for, and made."""

    called_for: Annotated[int, about("Faults that called for it.")]
    made: Annotated[int, about("How many of them got it.")]


class PlayedCall(Document, frozen=True):
    """A call of an episode."""

    tool: Annotated[object, about("What the agent sent as the tool's name: mostly a text.")]
    arguments: Annotated[object, about("What the agent sent: mostly an object.")]
    verbatim: Annotated[bool, about("Whether both are as sent; otherwise JSON has no word for them.")]
    answer: Annotated[dict[str, object], about("What it was answered, with noise.")]
    key: Annotated[
        list[object] | None, about("Event key: tool, resource, repeat index; null where nothing was drawn.")
    ]
    draw: Annotated[str | None, about("Digest of the key's draw.")]
    fault: Annotated[str | None, about("The fault that it met.")]
    blocked_by: Annotated[str | None, about("The earlier fault that it was refused by.")]
    charged: Annotated[bool, about("Whether it counts against the budget.")]


class PlayedEpisode(Document, frozen=True):
    """One task under one schedule, as it was played; `episode replay` takes it."""

    task: Annotated[str, about("As pool:index.")]
    task_sha256: Annotated[str, about("Of the task's canonical document.")]
    regime: Annotated[str, about("The noise.")]
    schedule_seed: Annotated[str, about("A whole number, as text: it may be beyond 2^53.")]
    true_success: Annotated[bool, about("Whether the final world is the expected one, field by field.")]
    observed_reward: Annotated[int, about("0 or 1: what the grader reported.")]
    flipped: Annotated[bool, about("Whether the grader reported a success as a failure.")]
    ended: Annotated[
        Literal["finished", "budget_exceeded", "stopped"],
        about("Who ended it; `stopped`: neither the agent nor the budget."),
    ]
    calls_charged: Annotated[int, about("Calls that count against the budget.")]
    budget: Annotated[int, about("Most calls.")]
    world_changed: Annotated[bool, about("Whether the final world differs from the first at all.")]
    differences: list[FieldDifference]
    exposures: list[LandedFault]
    recovery: Annotated[dict[str, Recovery], about("By what called for it.")]
    grader_draw: Annotated[str, about("Digest of the grader's draw.")]
    prompt: Annotated[str, about("What the agent is asked.")]
    calls: Annotated[list[PlayedCall] | None, about("Null where they were not kept.")]


class ReplayedEpisode(Document, frozen=True):
    """A recorded episode that was played again: the same answers, draws and outcome."""

    verdict: Verified
    task: Annotated[str, about("The task, as pool:index.")]
    calls: Annotated[int, about("That were charged.")]
    true_success: Annotated[bool, about("Whether the final world is the expected one.")]
    observed_reward: Annotated[int, about("0 or 1: what the grader reported.")]


@group()
def episode() -> None:
    """Play an episode, or replay a recorded one."""


@episode.command()
def play(
    *,
    task_id: str = option("--task", default="validation:0", help="Task, as pool:index."),
    regime: str = option(default="clean", shell_complete=offer_regimes, help="Noise setting."),
    schedule: int | None = option(
        type=click.IntRange(0, SCHEDULES - 1), help="Index of the task's evaluation schedule; default: 0."
    ),
    seed: int | None = option(type=Seed(), help="Seed of the schedule, instead of its index."),
    agent: str | None = option(
        type=click.Choice(["reference", "careless"]),
        help="Scripted agent; default: the reference.",
    ),
    own_hand: bool = flag("--by-hand", help="Play it yourself; calls are read from stdin."),
    full: bool = flag(help="Print event keys and full answers."),
    as_json: bool = json_option,
) -> None:
    """Play one task under one schedule.

    Each call is shown with its fault, if any.

    \b
    Examples:
      toolkit episode play --task validation:0 --regime clean --schedule 0
      toolkit episode play --task test:7 --regime faults_p025 --schedule 2
      toolkit episode play --task test:7 --regime clean --agent careless --json
      toolkit episode play --task train:12 --regime challenge --by-hand
    """
    from toolkit.lab.episodes import agents, document
    from toolkit.lab.episodes.episode import play as play_episode
    from toolkit.lab.tasks.pools import load_task
    from toolkit.noise.regimes import REGIMES
    from toolkit.seeds import evaluation_seed

    task = load_task(task_id)
    if regime not in REGIMES:
        problem = f"there is no regime {regime!r}"
        raise UsageError(problem, expected=", ".join(REGIMES), remedy=did_you_mean(regime, REGIMES))
    if seed is not None and schedule is not None:
        raise UsageError("--seed and --schedule exclude each other")
    if own_hand and agent is not None:
        raise UsageError("--by-hand and --agent exclude each other")
    if seed is None:
        seed = evaluation_seed(task.task_id, schedule or 0)
    player = by_hand(task, sys.stdin) if own_hand else agents.AGENTS[agent or "reference"]
    played = play_episode(task, REGIMES[regime], seed, player, traced=True)
    if as_json:
        print_json(document.episode_document(played))
    else:
        print_episode(played, full=full)


@episode.command()
def replay(
    *,
    file: Path | None = argument(type=click.Path(path_type=Path, allow_dash=True), required=False),
    study: str | None = option(
        metavar=STUDY,
        shell_complete=offer_studies,
        help="Study whose row is played, with --run and its place.",
    ),
    place: dict[str, Any] = together(
        dict,
        run_id=option("--run", shell_complete=offer_runs, help="Run of the row."),
        step=option(type=click.IntRange(0), help="Step of the evaluation, or of the training group."),
        phase=option(type=click.Choice(["periodic", "final"]), default="periodic"),
        regime=option(shell_complete=offer_regimes, help="Regime of the evaluation."),
        task=option(type=click.IntRange(0), help="Evaluation: position of the task in its pool."),
        schedule=option(type=click.IntRange(0), help="Evaluation: index of the schedule."),
        position=option(type=click.IntRange(0), help="Training: position of the group in its step."),
        slot=option(type=click.IntRange(0), help="Training: which rollout of the group."),
    ),
    full: bool = flag(help="Print every answer whole."),
    as_json: bool = json_option,
) -> None:
    """Play a recorded episode again.

    The same calls must meet the same answers, draws and outcome.

    FILE is what `toolkit episode play --json` printed; - reads it from stdin. In place of a file, a row of a
    study's registers is named: the policy of its run's checkpoint then plays it, and what comes out has to be
    what the register says.

    \b
    Examples:
      toolkit episode replay tests/golden/episode.json
      toolkit episode replay --study embedded --run c0-clean-s0 --step 40 \\
        --regime clean --task 3 --schedule 1
      toolkit episode replay --study embedded --run c4-independent-s1 --step 7 \\
        --position 2 --slot 5 --json
    """
    from toolkit.lab.episodes.document import replay as replay_episode

    if (file is None) == (study is None):
        raise UsageError("name a FILE, or a row with --study, --run and its place")
    played = _registered(study, place) if study else replay_episode(_read(file or Path("-")))
    if as_json:
        print_json(_verified(played))
    else:
        print_episode(played, full=full)
        say_line(f"replayed: {played.calls} calls, the same answers, draws and outcome")


EVALUATION = ("regime", "task", "schedule")
TRAINING = ("position", "slot")


def _registered(study: str, place: dict[str, Any]) -> AnyEpisode:
    from toolkit import cases
    from toolkit.lab.verification.replay import Replayer

    if place["run_id"] is None or place["step"] is None:
        raise UsageError("a row of a study is named by its run and its step", expected="--run and --step")
    evaluation, training = ([place[name] is not None for name in names] for names in (EVALUATION, TRAINING))
    if not (all(evaluation) and not any(training)) and not (all(training) and not any(evaluation)):
        raise UsageError(
            "the row's place is not clear",
            expected="--regime, --task and --schedule of an evaluation, or --position and --slot of a group",
        )
    replayer = Replayer(cases.open_study(study), place["run_id"])
    if all(training):
        return replayer.rollout(place["step"], place["position"], place["slot"])
    return replayer.evaluated(*(place[name] for name in ("phase", "regime", "step", "task", "schedule")))


def _verified(played: AnyEpisode) -> ReplayedEpisode:
    outcome = played.calls, played.true_success, played.observed_reward
    return ReplayedEpisode("verified", played.task.task_id, *outcome)


def _no_number(text: str) -> float:
    raise ValueError(f"an episode holds whole numbers only; found {text[:20]}")


def _read(file: Path) -> dict[str, Any]:
    from toolkit.files import read_text

    if str(file) == "-" and sys.stdin is None:
        raise IncompleteError("stdin is closed", remedy="name a file, or send the episode to stdin")
    try:
        text = sys.stdin.read() if str(file) == "-" else read_text(file)
        document = json.loads(text, parse_constant=_no_number, parse_float=_no_number)
    except (ValueError, RecursionError) as error:
        raise DamagedError("the file is not JSON", found=str(error)[:200], where=file) from None
    if not isinstance(document, dict):
        problem = "this is not the document of an episode"
        expected = "what `toolkit episode play --json` prints"
        raise DamagedError(problem, expected=expected, found=f"a {type(document).__name__}", where=file)
    return document


def print_episode(episode: AnyEpisode, *, full: bool = False) -> None:
    """Print an episode; `full` prints event keys, and every answer whole."""
    say_line(bold(episode.task.task_id), f"   {episode.regime.name}   schedule seed {episode.schedule.seed}")
    for line in episode.task.prompt.split("\n"):
        say_line(f"  {line}" if line else "")
    say_line()
    if episode.trace is not None:
        _print_calls(episode.trace, full=full)
    _print_outcome(episode)


def _side(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def _print_calls(trace: Sequence[CallRecord | Call], *, full: bool) -> None:
    rows = []
    number = 0
    for call in trace:
        number += call.charged
        answer = json.dumps(call.answer, ensure_ascii=False) if full else describe(call.answer)
        shown = coloured(answer, "red" if "error" in call.answer else None)
        rows.append((str(number) if call.charged else "", _call_text(call), _mark(call), shown))
        if full:
            say_line(f"{rows[-1][0]:>2}  {rows[-1][1]}")
            for label, value in (("event key", _key(call)), ("fault", rows[-1][2]), ("answer", shown)):
                if value:
                    say_line(f"    {label:9}  ", value)
    if not full:
        print_table(("", "call", "fault", "answer"), rows, numbers=("",), whole=("fault",))


def _call_text(call: CallRecord | Call) -> str:
    if not isinstance(call.arguments, dict):
        return f"{call.tool}({call.arguments!r})"
    arguments = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    return f"{call.tool}({arguments})"


def _key(call: CallRecord | Call) -> str:
    return "" if call.key is None else " ".join(map(str, (call.tool, *call.key)))


def _mark(call: CallRecord | Call) -> Styled:
    if call.fault is not None:
        return coloured(f"⚡ {call.fault}", "yellow")
    return coloured(f"· {call.blocked_by}" if call.blocked_by else "", "yellow")


def _print_outcome(episode: AnyEpisode) -> None:
    from toolkit.lab.episodes.episode import Episode, differences

    say_line()
    say_line(
        "true success ",
        coloured("yes", "green") if episode.true_success else coloured("no", "red"),
        f"   observed reward {episode.observed_reward}" + (" (flipped)" if episode.flipped else ""),
        f"   {episode.calls} of {episode.task.budget} calls   {episode.ended.replace('_', ' ')}",
    )
    if episode.exposures:
        landed = [e.fault if e.changed else f"{e.fault} (without effect)" for e in episode.exposures]
        say_line(f"faults: {', '.join(landed)}")
    for code, count in episode.called_for.items():
        say_line(f"{code.replace('_', ' ')}: {episode.recovered.get(code, 0)} of {count}")
    if isinstance(episode, Episode):
        for d in differences(episode.task, episode.world):
            line = f"{d.record} {d.field}: expected {_side(d.expected)}, found {_side(d.found)}"
            say_line(coloured(line, "red"))


episode.fold("replay", "play", "--recorded", "Replay a recorded episode; see episode replay --help.")


HELP = """\
Write a call as  TOOL NAME=VALUE …  or as  TOOL {"name": value, …}, as in:
  get_order order_id=O-10233
  cancel_order order_id=O-10233 reason="customer request"
tools  lists the tools    task  shows the task again    help  shows this
finish  ends the episode  quit, or the end of input, leaves it as it is"""
LEAVING = frozenset({"quit", "exit"})
MOST_BRACKETS = 500
SELF_EVIDENT = frozenset({"temporarily_unavailable", "outage", "timeout"})


def by_hand(task: Task, stream: TextIO | None) -> Callable[[str, Callable[[str, dict[str, Any]], Any]], None]:
    """Return an agent that makes the calls written on a stream."""

    def agent(prompt: str, call: Callable[[str, dict[str, Any]], Any]) -> None:
        remarks(f"{prompt}\n\nbudget {task.budget} calls\n{HELP}\n")
        for line in _lines(stream):
            if line in {"help", "?"}:
                remarks(HELP)
            elif line == "task":
                remarks(prompt)
            elif line == "tools":
                _print_tools()
            elif line in LEAVING or _is_last(_make(line, call)):
                return

    return agent


def _is_last(answer: dict[str, Any]) -> bool:
    return bool(answer.get("finished")) or answer.get("error", {}).get("code") == "budget_exceeded"


def _lines(stream: TextIO | None) -> Iterator[str]:
    """Yield the lines that say something; ask for each on a terminal. An interrupt ends them."""
    if stream is None:
        return
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    while True:
        if stream.isatty():
            click.echo("> ", nl=False, err=True)
        try:
            line = stream.readline()
        except KeyboardInterrupt:
            return
        if not line:
            return
        if line.strip():
            yield line.strip()


def _make(line: str, call: Callable[[str, dict[str, Any]], Any]) -> dict[str, Any]:
    try:
        tool, arguments = parse(line)
    except (ValueError, RecursionError) as error:
        remark(f"not a call: {error}")
        return {}
    answer: dict[str, Any] = call(tool, arguments)
    remark(describe(answer))
    click.echo(json.dumps(answer, indent=2), err=True)
    return answer


def parse(line: str) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments that a line names."""
    tool, *more = line.split(maxsplit=1)
    rest = more[0] if more else ""
    if rest.startswith("{"):
        if rest.count("[") + rest.count("{") > MOST_BRACKETS:
            raise ValueError("too many brackets")
        return tool, json.loads(rest)
    arguments: dict[str, Any] = {}
    for word in shlex.split(rest):
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word[:LONGEST_WORD]!r} is not NAME=VALUE")
        if name in arguments:
            raise ValueError(f"{name[:LONGEST_WORD]} is given twice")
        arguments[name] = value
    return tool, arguments


def _print_tools() -> None:
    from toolkit.lab.backoffice.tools import TOOLS

    for tool in TOOLS.values():
        names = " ".join(p.name if p.required else f"[{p.name}]" for p in tool.parameters)
        remarks(f"  {tool.name} {names}\n      {tool.about}")
        for parameter in tool.parameters:
            if parameter.choices:
                remark(f"      {parameter.name}: {', '.join(parameter.choices)}")


def describe(answer: dict[str, Any]) -> str:
    """Return an answer in one line."""
    if "error" in answer:
        error = answer["error"]
        if "retry_after" in error:
            return f"{error['code']}, {error['retry_after']} s"
        code: str = error["code"]
        return code if code in SELF_EVIDENT else f"{code}: {error['message']}"
    fields = {name: value for name, value in answer.items() if name not in {"revision", "next_offset"}}
    if not fields:
        return f"done, revision {answer['revision']}"
    return ", ".join(_short(name, value) for name, value in fields.items() if value is not False)


def _short(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{name}: {len(value)}"
    if isinstance(value, dict):
        known = ("name", "status", "refundable_cents", "pick_list")
        return " ".join([f"{name}:", *(f"{key} {value[key]}" for key in known if value.get(key) is not None)])
    return name if value is True else f"{name} {value}"
