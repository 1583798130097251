"""The files, as verifiers has its tasks and tools."""

from collections.abc import Iterator

import verifiers.v1 as vf
from files import Files, copied

from toolkit.pairing.tools import tool
from toolkit.pairing.verifiers import NoisyData, NoisyState, NoisyToolset

__all__ = ["FilesTaskset"]


class FilesState(NoisyState):
    """A rollout's state: whether the file was copied."""

    copied: float = 0


class FilesTools(NoisyToolset[vf.ToolsetConfig, FilesState]):
    """The tools."""

    TOOL_PREFIX = None

    async def setup_task(self, task: NoisyData) -> None:
        """Begin anew."""
        await super().setup_task(task)
        self.files, self.name = Files(), task.id

    @vf.tool
    @tool("read", "name")
    def show(self, name: str) -> str:
        """Show a file."""
        return self.files.show(name)

    @vf.tool
    @tool("write", "name", repeatable=True)
    def put(self, name: str, text: str) -> str:
        """Write a file."""
        answer = self.files.put(name, text)
        self.state.copied = copied(self.files, self.name)
        return answer


class FilesTask(vf.Task[NoisyData, FilesState]):
    """A file to be copied."""

    @classmethod
    def toolsets(cls, _: vf.TaskConfig) -> list[vf.Toolset]:
        """Return its tools."""
        return [FilesTools(vf.ToolsetConfig())]

    @vf.reward
    async def solved(self, trace: vf.Trace) -> float:
        """Return whether it was."""
        return trace.state.copied


class FilesTaskset(vf.Taskset[FilesTask, vf.TasksetConfig]):
    """Both."""

    def load(self) -> Iterator[FilesTask]:
        """Yield them."""
        for name in ("notes", "plan"):
            yield FilesTask(NoisyData(id=name, prompt=f"Copy {name} to copy."))


if __name__ == "__main__":
    FilesTools.run()
