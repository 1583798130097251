"""Episodes under any agent: determinism, the documented shape, and the overlay against the whole world."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolkit.lab.backoffice.parameters import CODES, Refusal, read_arguments
from toolkit.lab.backoffice.records import Record, Ticket
from toolkit.lab.backoffice.tools import TOOLS, execute
from toolkit.lab.backoffice.world import World, snapshot
from toolkit.lab.episodes.agents import careless, reference
from toolkit.lab.episodes.desk import Desk
from toolkit.lab.episodes.document import episode_document
from toolkit.lab.episodes.episode import changed, close, play, succeeded
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES, Mixture, Regime

TASKS = [load_task(f"validation:{number}") for number in range(20)]
Episode = tuple[Any, str, int, list[tuple[Any, Any]]]
"""A task, a regime, a schedule, and calls."""
SEEDS = st.integers(0, 2**64 - 1)


@st.composite
def plausible(draw: st.DrawFn, task: Any) -> tuple[str, dict[str, Any]]:
    """Draw a call that an agent might make: known identifiers, legal values, mostly."""
    tool = draw(st.sampled_from(list(TOOLS.values())))
    by_kind = {"customer_id": "C-", "order_id": "O-", "product_id": "P-"}
    texts = ["Riga", "Ghent", "Lyon", "1 A Road", "PL-1-1", "ada", ""]
    arguments: dict[str, Any] = {}
    for parameter in tool.parameters:
        if parameter.name in by_kind:
            known = [key for key in task.base.records if key.startswith(by_kind[parameter.name])]
            arguments[parameter.name] = draw(st.sampled_from(known))
        elif parameter.choices:
            arguments[parameter.name] = draw(st.sampled_from(parameter.choices))
        elif parameter.type == "integer":
            arguments[parameter.name] = draw(st.integers(-1, 4) | st.integers(1, 5000))
        else:
            arguments[parameter.name] = draw(st.sampled_from(texts))
    return tool.name, arguments


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@st.composite
def nearly(draw: st.DrawFn, task: Any) -> list[tuple[Any, Any]]:
    """Draw the plan with up to two calls left out, sent twice, changed or added."""
    calls = [(call.tool, call.arguments) for call in task.plan]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(calls) - 1)) if calls else 0
        what = draw(st.sampled_from(["omit", "repeat", "change", "add"]))
        if what == "omit":
            del calls[at : at + 1]
        elif what == "repeat":
            calls[at:at] = calls[at : at + 1]
        elif what == "add":
            calls.insert(at, draw(plausible(task)))
        elif calls:
            tool, arguments = calls[at]
            _, others = draw(plausible(task).filter(lambda other: bool(other[1])))
            calls[at] = (tool, {**arguments, **{k: v for k, v in others.items() if k in arguments}})
    return calls


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    """Draw a task, a regime, a schedule and calls: of the plan, plausible, or any JSON at all."""
    task = draw(st.sampled_from(TASKS))
    planned = st.sampled_from([(call.tool, call.arguments) for call in task.plan])
    wild = st.tuples(st.sampled_from(list(TOOLS)) | st.text(), ANY_JSON)
    calls = draw(st.lists(planned | plausible(task) | wild, max_size=25) | nearly(task))
    return task, draw(st.sampled_from(list(REGIMES))), draw(SEEDS), calls


def run(task: Any, regime: str, seed: int, calls: list[tuple[Any, Any]]) -> tuple[Desk, list[dict[str, Any]]]:
    desk = Desk(task, REGIMES[regime], seed, traced=True)
    return desk, [desk.call(tool, arguments) for tool, arguments in calls]


@given(episodes())
def test_any_call_gets_an_answer_of_the_documented_shape(episode: Episode) -> None:
    desk, answers = run(*episode)
    for answer in answers:
        if "error" in answer:
            assert answer["error"]["code"] in CODES
            assert answer["error"]["message"]
        else:
            assert {"revision", "waited", "finished"} & answer.keys()
    assert desk.calls <= desk.task.budget
    json.dumps(episode_document(close(desk)), ensure_ascii=False, allow_nan=False).encode()


@given(episodes(), st.data())
def test_equal_seed_and_key_meet_the_same_fate_in_any_order(episode: Episode, data: st.DataObject) -> None:
    """Two rollouts of one schedule, the calls of one in another order: equal keys, equal faults."""
    task, regime, seed, calls = episode
    shuffled = data.draw(st.permutations(calls))
    fates: dict[tuple[str, str, int], str | None] = {}
    for order in (calls, shuffled):
        desk, _ = run(task, regime, seed, order)
        for record in desk.trace or ():
            if record.key is not None:
                assert fates.setdefault((record.tool, *record.key), record.fault) == record.fault


FREE = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)


@given(st.sampled_from(TASKS), SEEDS, st.data())
def test_rewording_never_changes_a_key_or_its_fate(task: Any, seed: int, data: st.DataObject) -> None:
    """Every text of a planned call that names no record is replaced by any text at all."""
    call = data.draw(st.sampled_from([call for call in task.plan if TOOLS[call.tool].kind != "control"]))
    names = {p.name for p in TOOLS[call.tool].parameters if p.type == "string" and not p.identifier}
    free = {p.name for p in TOOLS[call.tool].parameters if p.name in names and not p.choices}
    reworded = {name: data.draw(FREE) if name in free else value for name, value in call.arguments.items()}
    regime = REGIMES["faults_p025"]
    fates = []
    for arguments in (call.arguments, reworded):
        desk = Desk(task, regime, seed, traced=True)
        desk.call(call.tool, arguments)
        (record,) = desk.trace or ()
        fates.append((record.key, record.fault))
    assert fates[0] == fates[1]
    assert fates[0][0] is not None


STALE = Regime("stale", "for tests", 0.5, Mixture({"stale_read": 1}))


@given(episodes())
def test_a_stale_read_shows_exactly_the_state_before_the_preceding_write(episode: Episode) -> None:
    """The history of worlds is kept here: a read shows the present one or, if stale, the one before."""
    task, _, seed, calls = episode
    desk = Desk(task, STALE, seed, traced=True)
    worlds = [desk.world]
    for tool, arguments in calls:
        answer = desk.call(tool, arguments)
        if desk.world is not worlds[-1]:
            worlds.append(desk.world)
            continue
        record = (desk.trace or [])[-1]
        if record.key is None or TOOLS[tool].kind == "write":
            continue
        shown = worlds[-2] if record.fault == "stale_read" and len(worlds) > 1 else worlds[-1]
        read = read_arguments(TOOLS[tool].parameters, arguments)
        try:
            expected = execute(TOOLS[tool], shown, read)[1]
        except Refusal as refusal:
            expected = refusal.answer()
        assert answer == expected


@given(episodes())
def test_a_trace_counts_its_faults_and_its_charged_calls(episode: Episode) -> None:
    desk, _ = run(*episode)
    trace = desk.trace or []
    assert [e.fault for e in desk.exposures] == [r.fault for r in trace if r.fault is not None]
    assert desk.calls == sum(record.charged for record in trace)
    for code, made in desk.recovery.made.items():
        assert made <= desk.recovery.called_for[code]


def outcome(world: World) -> tuple[dict[str, Any], list[Any]]:
    """Return the whole world as a grader without an overlay would see it, normalized independently."""

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return " ".join(value.split()).casefold()
        return [plain(part) for part in value] if isinstance(value, tuple) else value

    whole = snapshot(world)
    return (
        {key: plain(tuple(record)) for key, record in whole.items() if not isinstance(record, Ticket)},
        sorted(str(plain(tuple(r)[1:5])) for r in whole.values() if isinstance(r, Ticket)),
    )


@given(episodes())
def test_grading_the_overlay_equals_comparing_whole_worlds(episode: Episode) -> None:
    desk, _ = run(*episode)
    task, world = desk.task, desk.world
    expected: dict[str, Record] = dict(task.expected)
    whole = World(task.base, expected, 0)
    assert succeeded(task, world) == (outcome(world) == outcome(whole))
    assert changed(world) == (outcome(world) != outcome(World(task.base, {}, 0)))


@given(st.sampled_from(TASKS), st.sampled_from(list(REGIMES)), SEEDS, st.sampled_from([reference, careless]))
def test_a_kept_trace_changes_nothing(task: Any, regime: str, seed: int, agent: Any) -> None:
    bare = play(task, REGIMES[regime], seed, agent)
    traced = play(task, REGIMES[regime], seed, agent, traced=True)
    assert bare.trace is None
    for name in ("world", "calls", "exposures", "called_for", "recovered", "ended"):
        assert getattr(bare, name) == getattr(traced, name)
