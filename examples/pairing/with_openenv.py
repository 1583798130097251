"""OpenEnv: `python with_openenv.py paired`, then `toolkit pairing verify groups.jsonl`."""

import sys

from fastmcp import FastMCP
from files import Files, copied
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.env_server.types import Action, Observation, State

from toolkit.pairing.groups import Groups
from toolkit.pairing.openenv import Paired
from toolkit.pairing.tools import declaration_of


class FilesEnvironment(MCPEnvironment):
    """The files, as OpenEnv has its environments."""

    def __init__(self) -> None:
        self.files, self.name = Files(), ""
        server = FastMCP("files")
        for tool in (self.show, self.put):
            server.tool(tool)
        super().__init__(server)

    def show(self, name: str) -> str:
        """Show a file."""
        return self.files.show(name)

    def put(self, name: str, text: str) -> str:
        """Write a file."""
        return self.files.put(name, text)

    @property
    def state(self) -> State:
        """Nothing that anybody asks for."""
        return State()

    def reset(self, name: str, **_: object) -> Observation:
        """Begin anew."""
        self.files, self.name = Files(), name
        return Observation()

    def _step_impl(self, *_: object, **__: object) -> Observation:
        return Observation(done=True, reward=copied(self.files, self.name))


groups = Groups(sys.argv[1], "faults_p025", seed=0, size=4, record="groups.jsonl")
environment = Paired(FilesEnvironment(), declaration_of(Files), groups)
for step in (1, 2):
    for task in ("notes", "plan"):
        for slot in range(groups.size):
            environment.reset(step=step, task=task, slot=slot, name=task)
            shown = environment.step(CallToolAction(tool_name="show", arguments={"name": task}))
            text = shown.result.content[0].text
            environment.step(CallToolAction(tool_name="put", arguments={"name": "copy", "text": text}))
            reward = environment.step(Action()).reward
