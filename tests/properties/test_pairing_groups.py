"""Groups of rollouts: schedules follow from the design and the place, whatever was played before."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from toolkit.noise.draws import DESIGNS
from toolkit.noise.trainers.groups import Groups, read, verify
from toolkit.noise.trainers.tools import tool
from toolkit.seeds import LIMIT

SEEDS = st.integers(0, LIMIT - 1)


class Files:
    """A world of texts."""

    @tool("read", "path")
    def show(self, path: str) -> str:
        """Show a file."""
        return path

    @tool("write", "path")
    def put(self, path: str) -> str:
        """Write a file."""
        return path


@given(design=st.sampled_from(DESIGNS), seed=SEEDS, size=st.integers(1, 5), data=st.data())
def test_rollouts_meet_and_leave_the_same_in_any_order(design, seed, size, data) -> None:
    rollouts = [(step, task, slot) for step in (1, 2) for task in "ab" for slot in range(size)]
    calls = [(name, path) for name in ("show", "put") for path in "xyz"]
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2):
            record = Path(folder) / f"{number}.jsonl"
            groups = Groups(design, "faults_p025_outage_free", seed, size, record)
            fates = {}
            for place in data.draw(st.permutations(rollouts)):
                rollout = groups.rollout(*place)
                files = rollout.noisy(Files())
                for name, path in calls:
                    getattr(files, name)(path)
                fates[place] = [call.fault for call in files.session.calls]
                rollout.observed(float(None in fates[place]))
            assert verify(record).rollouts == len(rollouts)
            seen.append((fates, sorted(map(repr, read(record)))))
    assert seen[0] == seen[1]
