"""Noise in front of the tools of a Python object.

class Files:
    @tool("read", "path")
    def show(self, path: str) -> str: ...

    @tool("write", "path", repeatable=True)
    def replace(self, path: str, text: str) -> str: ...

files = Noisy(Files(), REGIMES["faults_p025"], schedule_seed=7)
files.show("notes")
"""

import copy
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from toolkit.errors import UsageError
from toolkit.noise.declaration import WAIT, Declaration, declare
from toolkit.noise.regimes import Regime
from toolkit.noise.session import Session
from toolkit.noise.tools import Kind, Tool

_DECLARED = "__noise__"
Method = TypeVar("Method", bound=Callable[..., Any])


def tool(kind: Kind, resource: str | None = None, **said: Any) -> Callable[[Method], Method]:
    """Declare a method as a tool.

    Args:
        kind: read, list, write or control.
        resource: the argument that names what a call is about.
        said: further arguments of `toolkit.noise.tools.Tool`.
    """

    def declared(method: Method) -> Method:
        setattr(method, _DECLARED, Tool(method.__name__, kind, resource, **said))
        return method

    return declared


def declaration_of(cls: type) -> Declaration:
    """Return what the methods of a class declare.

    Raises:
        UsageError: it has no declared method.
    """
    methods = inspect.getmembers(cls, inspect.isfunction)
    tools = [getattr(method, _DECLARED) for _, method in methods if hasattr(method, _DECLARED)]
    if not tools:
        raise UsageError(
            f"{cls.__name__} declares no tool",
            remedy="put @tool('read', 'path') or the like on its methods, or hand over a declaration",
        )
    return declare(cls.__name__, tools)


class Noisy:
    """An object whose declared methods meet noise; everything else of it is as it was.

    Args:
        target: the object.
        regime: the noise.
        schedule_seed: seed of the schedule ω.
        declaration: what is known of its tools; what its class declares, if left out.

    Attributes:
        session: the episode: its calls, and the faults that landed.
    """

    def __init__(
        self, target: Any, regime: Regime, schedule_seed: int, declaration: Declaration | None = None
    ) -> None:
        self.session = Session(declaration or declaration_of(type(target)), regime, schedule_seed)
        self._target = target
        self._before = target
        self._snapshots = any(
            "stale_read" in known.faults and known.stale == "snapshot"
            for known in self.session.declaration.tools.values()
        )

    def wait(self, seconds: int) -> Any:
        """Wait, after a rate limit.

        Args:
            seconds: how long.
        """
        return self.session.call(WAIT, {"seconds": seconds}, lambda: None)

    def __getattr__(self, name: str) -> Any:
        """Return a tool with noise in front of it, or whatever else the object has."""
        method = getattr(self._target, name)
        if name not in self.session.declaration.tools:
            return method
        signature = inspect.signature(method)

        @wraps(method)
        def met(*values: Any, **named: Any) -> Any:
            bound = signature.bind(*values, **named)
            bound.apply_defaults()
            return self._called(name, bound.arguments, lambda on: getattr(on, name)(*values, **named))

        return met

    def _called(self, name: str, arguments: dict[str, Any], run: Callable[[Any], Any]) -> Any:
        known = self.session.declaration.tools[name]
        if known.kind == "write":

            def written() -> Any:
                before = copy.deepcopy(self._target) if self._snapshots else self._target
                answer = run(self._target)
                self._before = before
                return answer

            return self.session.call(name, arguments, written)
        snapshot = (lambda: run(copy.deepcopy(self._before))) if known.stale == "snapshot" else None
        return self.session.call(name, arguments, lambda: run(self._target), snapshot)
