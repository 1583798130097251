"""The embedded policy in a foreign world: it knows the plan, and errs as it chooses.

It is the policy of the back office, parameter by parameter. A foreign world says which of the eight templates
a request stands for, and each of its tools has the surface tokens of one of the thirteen.
"""

from typing import Any

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.desk import Answer, MakeCall
from toolkit.lab.episodes.workflow import Steps
from toolkit.lab.policies.agent import (
    AMBIGUOUS,
    ERRORS,
    INDIRECT,
    OVER,
    PLAIN,
    SHORT_WAIT,
    EndedError,
    Rollout,
)
from toolkit.lab.policies.loglinear import Policy
from toolkit.lab.policies.situations import Kind
from toolkit.lab.tasks.task import Call
from toolkit.lab.worlds.foreign import BUDGET_BASE, BUDGET_PER_CALL, ForeignTask, ForeignWorld, Request

_SURFACE = tuple(TOOLS)


class ForeignRollout(Rollout):
    """One episode of the embedded policy in a foreign world.

    Args:
        world: the world.
        task: what is to be done.
        policy, seed, shared: as of `Rollout`.
    """

    def __init__(
        self, world: ForeignWorld, task: ForeignTask, policy: Policy, seed: int, *, shared: bool = False
    ) -> None:
        super().__init__(policy, seed, shared=shared)
        self._tools = world.declaration.tools
        self._task = task
        self._number = {name: at for at, name in enumerate(sorted(self._tools))}

    def __call__(self, _prompt: str, call: MakeCall) -> None:
        """Play the episode."""
        self._call = call
        self._late = BUDGET_BASE + BUDGET_PER_CALL * len(self._task.requests)
        try:
            for request in self._task.requests:
                self._request = request
                self._template = request.template
                self._follow(_steps(request))
                self._make(Call("finish", {}))
        except EndedError:
            return

    def _is_write(self, tool: str) -> bool:
        return self._tools[tool].kind == "write"

    def _slipped(self, wanted: Call) -> Call | None:
        """Return another call of the plan with the same tool, or the right one with a text cut short."""
        for request in self._task.requests:
            for call in request.plan:
                if call.tool == wanted.tool and call.arguments != wanted.arguments:
                    return call
        texts = [
            name for name, value in wanted.arguments.items() if isinstance(value, str) and len(value) > 1
        ]
        if not texts:
            return None
        return Call(wanted.tool, {**wanted.arguments, texts[-1]: wanted.arguments[texts[-1]][:-1]})

    def _make(self, call: Call) -> Answer:
        if self._surface:
            choice = self._policy.token(_SURFACE[self._number.get(call.tool, 0) % len(_SURFACE)])
            self.tokens.append((choice, choice.pick(self._token_unit())))
        self._calls += 1
        answer = self._call(call.tool, call.arguments)
        failed = answer.get("error")
        if failed is not None and failed["code"] in OVER:
            raise EndedError
        return answer

    def _level(self, wanted: Call) -> int:
        said = self._request.text.casefold()
        given = [str(part).casefold() in said for part in _parts(wanted.arguments)]
        if all(given):
            return PLAIN
        return INDIRECT if any(given) else AMBIGUOUS

    def _kind(self, wanted: Call, answer: Answer, *, is_write: bool) -> Kind | None:
        failed = answer.get("error")
        if failed is not None:
            return ERRORS.get(failed["code"], "refused")
        if is_write or wanted.tool == "wait":
            return None
        if answer["revision"] < self._revision:
            return "stale"
        return "truncated" if answer.get("has_more") else None

    def _noted(self, _wanted: Call, answer: Answer) -> Answer:
        self._revision = max(self._revision, answer.get("revision", 0))
        return answer

    def _continued(self, wanted: Call, _answer: Answer) -> Answer:
        """Ask again: the lists of these worlds have no second page."""
        return self._make(wanted)

    def _was_applied(self, _write: Call) -> bool:
        """Look whether a write of unknown fate was applied: then the revision has moved on."""
        answer = self._make(Call("wait", {"seconds": SHORT_WAIT}))
        if answer.get("revision", 0) <= self._revision:
            return False
        self._revision = answer["revision"]
        return True


def _steps(request: Request) -> Steps:
    for call in request.plan:  # noqa: UP028 - a tuple takes nothing that is sent to it
        yield call


def _parts(value: Any) -> list[Any]:
    """Return the values in arguments, those within lists and objects too."""
    if isinstance(value, dict):
        return [part for each in value.values() for part in _parts(each)]
    if isinstance(value, list):
        return [part for each in value for part in _parts(each)]
    return [value]
