"""One episode of anybody's tools under noise: each call meets the layer, then the tool, and is recorded.

What happens to a call, in this order, whose numbers the code repeats:

1. `wait` moves the clock of rate limits. A control tool, and one that was not declared, is called as if there
   were no noise.
2. The noise layer says what the call meets: an error in the tool's place, or a fault of its answer.
3. The tool is called. What it raises is its own: the fault then landed without effect.
4. A stale read shows what a snapshot from before the last write answers, or what the same call was answered
   before that write; where it was never made, the answer stands as it is.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from toolkit.canonical import canonical
from toolkit.noise.declaration import WAIT, Declaration
from toolkit.noise.draws import Schedule
from toolkit.noise.layer import Answer, Exposure, Fate, Layer, Recovery, Within
from toolkit.noise.regimes import Regime
from toolkit.noise.tools import Fault, Tool

Given = TypeVar("Given")


class Call(NamedTuple):
    """A call that was made, as registers keep it."""

    tool: str  # its tool
    arguments: Mapping[str, Any]  # its arguments
    key: tuple[str, int] | None  # resource and repeat index of its event key; None where no draw was made
    fault: Fault | None  # the fault that landed; None for none
    blocked_by: Fault | None  # the earlier fault that kept it from being drawn; None for none
    answer: Any  # what the agent got; None where the tool raised

    @property
    def charged(self) -> bool:
        """Whether the call counts: every one does."""
        return True


class StartedCall(NamedTuple):
    """A call between its noise and its tool."""

    tool: Tool | None  # the tool; None where it was not declared
    fate: Fate | None  # the fault of the answer; None for none
    recalled: str  # the call as a text, by which its answer is remembered


class Session:
    """One episode; `within` says how an answer is changed, where it only holds what the agent reads."""

    def __init__(
        self, declaration: Declaration, regime: Regime, schedule_seed: int, within: Within | None = None
    ) -> None:
        self.declaration = declaration
        self.schedule = Schedule(schedule_seed)
        self.regime = regime
        self.calls: list[Call] = []
        self._layer = Layer(regime, self.schedule)
        self._within = within
        self._sent: tuple[str, Mapping[str, Any]] = ("", {})
        # Answers before the last write, and since.
        self._before: dict[str, Any] = {}
        self._since: dict[str, Any] = {}

    @property
    def exposures(self) -> list[Exposure]:
        """Faults that landed, in order."""
        return self._layer.exposures

    @property
    def recovery(self) -> Recovery:
        """Trace codes."""
        return self._layer.recovery

    def observed(self, reward: float) -> float:
        """Return a reward as the grader reports it: zero where the schedule flips a success."""
        return 0.0 if reward and self.regime.flips(self.schedule) else reward

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        run: Callable[[], Any],
        snapshot: Callable[[], Any] | None = None,
    ) -> Any:
        """Make a call and return its answer."""
        begun = self.begin(name, arguments)
        if not isinstance(begun, StartedCall):
            return begun
        try:
            whole = run()
        except Exception:
            self.failed(begun)
            raise
        is_stale = begun.fate is not None and begun.fate.fault == "stale_read"
        return self.end(begun, whole, snapshot() if is_stale and snapshot is not None else None)

    def begin(self, name: str, arguments: Mapping[str, Any]) -> StartedCall | Answer:
        """Return the answer in the tool's place, or what `end` has to know once the tool has answered."""
        layer = self._layer
        layer.key = layer.blocked_by = None
        self._sent = (name, arguments)
        # 1.
        if name == WAIT:
            seconds = max(0, int(arguments.get("seconds", 1)))
            layer.wait(seconds)
            return self._recorded({"waited": seconds})
        tool = self.declaration.tools.get(name)
        if tool is None or tool.kind == "control":
            return StartedCall(tool, None, "")
        # 2.
        before = len(layer.exposures)
        fate = layer.meet(tool, self.declaration.resource(tool, arguments), arguments, len(self.calls))
        if isinstance(fate, dict):
            return self._recorded(fate, before)
        return StartedCall(tool, fate, "" if tool.kind == "write" else f"{name} {canonical(arguments)}")

    def failed(self, begun: StartedCall, answer: Any = None) -> Any:
        """Return a tool's refusal, which stands as it is."""
        # 3.
        before = len(self.exposures)
        if begun.tool is not None and begun.fate is not None:
            self._layer.refused(begun.tool, begun.fate, answer)
        return self._recorded(answer, before)

    def end(self, begun: StartedCall, whole: Any, snapshot: Any = None) -> Any:
        """Return the answer that is shown, given what the tool answered."""
        tool, fate, recalled = begun
        before = len(self.exposures)
        shown = whole
        if tool is not None and fate is not None:
            # 4.
            earlier = self._before.get(recalled, whole) if snapshot is None else snapshot
            shown = self._layer.finish(tool, fate, whole, earlier, self._within)
        if tool is not None and tool.kind == "write":
            self._before |= self._since
            self._since = {}
        elif recalled:
            self._since[recalled] = whole
        return self._recorded(shown, before)

    def _recorded(self, answer: Given, exposures: int | None = None) -> Given:
        name, arguments = self._sent
        landed = exposures is not None and len(self.exposures) > exposures
        fault = self.exposures[-1].fault if landed else None
        self.calls.append(Call(name, arguments, self._layer.key, fault, self._layer.blocked_by, answer))
        return answer
