"""Scripted agents: the reference recovers from what can be recovered from, the careless one does not try."""

from collections.abc import Callable, Mapping

from toolkit.lab.backoffice.tools import TOOLS
from toolkit.lab.episodes.brief import read_prompt
from toolkit.lab.episodes.desk import Agent, Answer, MakeCall
from toolkit.lab.episodes.workflow import Abandoned, look_after, workflow
from toolkit.lab.tasks.task import Call

ATTEMPTS = 8
OVER = frozenset({"budget_exceeded", "episode_over"})
DONE = "all that was asked"


class EpisodeOverError(Exception):
    """The desk takes no more calls."""


def reference(prompt: str, call: MakeCall) -> None:
    """Do what the prompt asks: retry, wait, read again, paginate, and look before writing a second time."""
    _work(prompt, call, _Careful(call).settle)


def watched_reference(begins: Callable[[int], None]) -> Agent:
    """Return the reference agent; `begins` is told each request's number before its first call."""
    return lambda prompt, call: _work(prompt, call, _Careful(call).settle, begins)


def careless(prompt: str, call: MakeCall) -> None:
    """Do what the prompt asks, taking every answer at face value: an error ends the errand it met."""
    watched_careless(lambda _: None)(prompt, call)


def watched_careless(begins: Callable[[int], None]) -> Agent:
    """Return the careless agent, watched as the reference agent is."""
    return lambda prompt, call: _work(
        prompt, call, lambda wanted: _unless_error(call(wanted.tool, wanted.arguments)), begins
    )


AGENTS: Mapping[str, Agent] = {"reference": reference, "careless": careless}


def _work(
    prompt: str,
    call: MakeCall,
    settle: Callable[[Call], Answer | None],
    begins: Callable[[int], None] = lambda _: None,
) -> None:
    steps = workflow(read_prompt(prompt), begins)
    try:
        wanted = next(steps)
        while True:
            answer = settle(wanted)
            wanted = steps.throw(Abandoned()) if answer is None else steps.send(answer)
    except StopIteration:
        call("finish", {"summary": DONE})
    except EpisodeOverError:
        return


def _unless_error(answer: Answer) -> Answer | None:
    error = answer.get("error")
    if error is None:
        return answer
    if error["code"] in OVER:
        raise EpisodeOverError
    return None


class _Careful:
    __slots__ = ("_call", "_revision")

    def __init__(self, call: MakeCall) -> None:
        self._call = call
        self._revision = 0

    def settle(self, wanted: Call) -> Answer | None:
        """Return a whole, current answer; None where there is none to be had."""
        answer = self._current(wanted)
        while answer is not None and answer.get("has_more"):
            name = TOOLS[wanted.tool].shows or ""
            rest = self._current(Call(wanted.tool, {**wanted.arguments, "offset": answer["next_offset"]}))
            if rest is None:
                return None
            answer = {**rest, name: answer[name] + rest[name]}
        return answer

    def _current(self, wanted: Call) -> Answer | None:
        tool = TOOLS[wanted.tool]
        for _ in range(ATTEMPTS):
            answer = self._call(wanted.tool, wanted.arguments)
            error = answer.get("error")
            if error is not None:
                if error["code"] == "timeout" and self._was_applied(wanted):
                    return {"revision": self._revision}
                if not self._may_try_again(error):
                    return None
            elif tool.kind == "write":
                self._revision = answer["revision"]
                return answer
            # An older revision than our last write's is a stale read; a missing field was lost.
            elif answer["revision"] >= self._revision and _is_whole(tool.shows or "", tool.fields, answer):
                return answer
        return None

    def _may_try_again(self, error: Answer) -> bool:
        code = error["code"]
        if code in OVER:
            raise EpisodeOverError
        if code == "rate_limited":
            self._call("wait", {"seconds": error["retry_after"]})
        return code in {"temporarily_unavailable", "rate_limited", "timeout"}

    def _was_applied(self, write: Call) -> bool:
        """Read whether a write of unknown fate was applied: then the revision has moved on."""
        answer = self._current(look_after(write))
        if answer is None or answer["revision"] == self._revision:
            return False
        self._revision = answer["revision"]
        return True


def _is_whole(name: str, fields: tuple[str, ...], answer: Answer) -> bool:
    shown = answer[name]
    if isinstance(shown, dict):
        return len(shown) == len(fields)
    return {len(item) for item in shown} <= {len(fields)}
