"""The desk: where an agent's calls meet the world and its noise.

What happens to a call, in this order, whose numbers the code repeats:

1. After the end nothing is done. `finish` ends the episode, free of charge and whatever its arguments. A call
   beyond the budget is refused and ends it too. Every other call counts, whatever becomes of it.
2. A call of an unknown tool or with arguments that cannot be read is refused. `wait` moves the clock.
3. The noise layer says what the call meets: an error in the world's place, or a fault of the answer.
4. The world answers. Whether there is such a record, and whether its state allows the call, it says only now.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

from toolkit.lab.backoffice.parameters import Refusal, read_arguments, shown
from toolkit.lab.backoffice.tools import TOOLS, Tool, execute
from toolkit.lab.backoffice.world import untouched
from toolkit.lab.tasks.task import Task
from toolkit.noise.draws import Schedule
from toolkit.noise.layer import Fate, Layer
from toolkit.noise.regimes import Regime
from toolkit.noise.tools import ANY_RESOURCE, Fault

Answer: TypeAlias = dict[str, Any]
MakeCall: TypeAlias = Callable[[str, dict[str, Any]], Answer]
Agent: TypeAlias = Callable[[str, MakeCall], None]
"""Given the prompt and a function that makes calls, and nothing else."""

_CONTAINERS = frozenset({dict, list})


class CallRecord(NamedTuple):
    """One call of a trace."""

    tool: Any  # what was called, as the agent wrote it
    arguments: Any  # its arguments, as the agent wrote them
    answer: Answer  # what the agent got
    key: tuple[str, int] | None  # resource and repeat index of the event key; None where no draw was made
    fault: Fault | None  # the fault that the draw made; None for none
    blocked_by: Fault | None  # the earlier fault that kept the call from being drawn; None for none
    charged: bool  # whether the call was charged to the budget


class Desk:
    """One episode in progress."""

    __slots__ = (
        "_before",
        "_layer",
        "calls",
        "ended",
        "exposures",
        "recovery",
        "regime",
        "schedule",
        "task",
        "trace",
        "world",
    )

    def __init__(self, task: Task, regime: Regime, schedule_seed: int, *, traced: bool = False) -> None:
        self.task = task
        self.regime = regime
        self.schedule = Schedule(schedule_seed)
        self.world = self._before = untouched(task.base)
        self.calls = 0  # charged to the budget so far
        self.ended: str | None = None  # `finished` or `budget_exceeded`; None while it goes on
        self.trace: list[CallRecord] | None = [] if traced else None
        self._layer = Layer(regime, self.schedule)
        self.exposures = self._layer.exposures
        self.recovery = self._layer.recovery

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Make a call and return its answer; bad input gets an error of the documented shape."""
        if self.trace is not None:
            return self._traced(self.trace, tool, arguments)
        try:
            return self._answer(tool, arguments)
        except Refusal as refusal:
            return refusal.answer()

    def _traced(self, trace: list[CallRecord], tool: str, arguments: dict[str, Any]) -> Answer:
        calls, exposures, layer = self.calls, len(self.exposures), self._layer
        layer.key = layer.blocked_by = None
        try:
            answer = self._answer(tool, arguments)
        except Refusal as refusal:
            answer = refusal.answer()
        # The agent may go on to change what it sent, and what it was answered.
        sent, answered = _kept(arguments), _kept(answer)
        fault = self.exposures[-1].fault if len(self.exposures) > exposures else None
        charged = self.calls > calls
        trace.append(CallRecord(tool, sent, answered, layer.key, fault, layer.blocked_by, charged))
        return answer

    def _answer(self, name: str, arguments: dict[str, Any]) -> Answer:
        # 1.
        if self.ended is not None:
            raise Refusal("episode_over", "the episode has ended; nothing was done")
        if name == "finish":
            self.ended = "finished"
            return {"finished": True}
        self._charge()
        # 2.
        tool = TOOLS.get(name) if type(name) is str else None
        if tool is None:
            raise Refusal("unknown_tool", f"there is no tool {shown(name)}; there are {', '.join(TOOLS)}")
        read = read_arguments(tool.parameters, arguments)
        if tool.kind == "control":
            self._layer.wait(read["seconds"])
            return {"waited": read["seconds"]}
        # 3.
        resource = ANY_RESOURCE if tool.resource is None else read[tool.resource]
        fate = self._layer.meet(tool, resource, read, self.calls - 1)
        # 4.
        if fate is None:
            return self._execute(tool, read)
        return fate if isinstance(fate, dict) else self._struck(tool, read, fate)

    def _charge(self) -> None:
        if self.calls >= self.task.budget:
            self.ended = "budget_exceeded"
            raise Refusal("budget_exceeded", f"the budget of {self.task.budget} calls is spent")
        self.calls += 1

    def _execute(self, tool: Tool, arguments: Answer) -> Answer:
        if tool.kind != "write":
            read: Answer = tool.run(self.world, **arguments)
            return read
        self._before, self.world = self.world, tool.run(self.world, **arguments)
        return {"revision": self.world.revision}

    def _struck(self, tool: Tool, arguments: Answer, fate: Fate) -> Answer:
        layer = self._layer
        try:
            whole = self._execute(tool, arguments)
            before = execute(tool, self._before, arguments)[1] if fate.fault == "stale_read" else None
        except Refusal as refusal:
            return cast("Answer", layer.refused(tool, fate, refusal.answer()))
        return cast("Answer", layer.finish(tool, fate, whole, before))


def _kept(value: Any) -> Any:
    """Return a copy that shares nothing with what was sent or answered; what is too deep, as it is."""
    try:
        return _copied(value)
    except RecursionError:
        return value


def _copied(value: Any) -> Any:
    if type(value) is dict:
        # Most parts are texts and numbers, which need no copy: asking here saves a call for each.
        return {name: _copied(part) if type(part) in _CONTAINERS else part for name, part in value.items()}
    if type(value) is list:
        return [_copied(part) if type(part) in _CONTAINERS else part for part in value]
    return value
