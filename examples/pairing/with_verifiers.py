"""verifiers: `python with_verifiers.py paired HARNESS`, then `toolkit pairing verify groups.jsonl`."""

import asyncio
import sys

import verifiers.v1 as vf

from toolkit.pairing.groups import Groups
from toolkit.pairing.verifiers import observed, slots


async def play() -> None:
    """Play two steps."""
    groups = Groups(sys.argv[1], "faults_p025", seed=0, size=2, record="groups.jsonl")
    agent = {"harness": {"id": sys.argv[2]}, "runtime": {"type": "subprocess"}}
    config = vf.SingleAgentEnvConfig(taskset={"id": "files_taskset"}, agent=agent)
    environment = vf.SingleAgentEnv(config)
    model = vf.ModelContext(client=vf.EvalClientConfig(), model="any", sampling=vf.SamplingConfig())
    async with environment.serving():
        for step in (1, 2):
            for task in environment.taskset:
                group = slots(groups, task, step)
                await asyncio.gather(*(environment.run_slot(slot, model) for slot in group))
                print([observed(slot) for slot in group])


asyncio.run(play())
