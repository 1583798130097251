"""Any loop: `python plain.py paired`, then `toolkit pairing verify groups.jsonl`."""

import sys

from files import Files, copied

from toolkit.pairing.groups import Groups

groups = Groups(sys.argv[1], "faults_p025", seed=0, size=4, record="groups.jsonl")
for step in (1, 2):
    for task in ("notes", "plan"):
        for slot in range(groups.size):
            rollout = groups.rollout(step, task, slot)
            tools = rollout.noisy(Files())
            tools.put("copy", tools.show(task))  # where a policy would act
            reward = rollout.observed(copied(tools, task))
