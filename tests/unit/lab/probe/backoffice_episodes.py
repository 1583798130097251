"""Back-office episodes as transcripts: what the agent wrote is chosen, prompts and answers are not."""

import re
import zlib

import numpy as np

from tests.unit.lab.probe.tiny import VOCABULARY
from toolkit.lab.episodes.episode import Episode, play
from toolkit.lab.policies.agent import Rollout
from toolkit.lab.policies.loglinear import Policy, untrained
from toolkit.lab.probe.design import RolloutSet
from toolkit.lab.probe.recorded import Recorded, Transcript
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed, sample_seed

POLICY = Policy(untrained(4), 4)
# Words of an answer that are kept: the tests' time goes with the length of transcripts.
ANSWER = 12


def numbers(text: str) -> list[int]:
    """Return a token for every word: a hash of it."""
    return [zlib.crc32(word.encode()) % VOCABULARY for word in re.findall(r"[\w-]+", text)]


def transcript(episode: Episode, rollout: Rollout) -> Transcript:
    """Return an episode's prompt, then by turns a call with its surface token, and the answer to it."""
    turns = [(numbers(episode.task.prompt), False)]
    # A call that the desk refused at the end of the budget has a surface token and may have no record.
    for record, (_, surface) in zip(episode.trace, rollout.tokens, strict=False):
        turns.append((numbers(f"{record.tool} {record.arguments} surface-{surface}"), True))
        turns.append((numbers(str(record.answer))[:ANSWER], False))
    tokens = [token for turn, _ in turns for token in turn]
    return Transcript(tuple(tokens), tuple(chosen for turn, chosen in turns for _ in turn))


def played(rollouts: RolloutSet) -> list[Recorded]:
    """Play a set; importance weights are drawn from a seed, about one in six is masked."""
    return [_task(rollouts, number) for number in range(rollouts.tasks)]


def _task(rollouts: RolloutSet, number: int) -> Recorded:
    task, transcripts, rewards = load_task(f"{rollouts.pool}:{number}"), [], []
    for schedule in range(rollouts.schedules):
        for sample in range(rollouts.per_schedule):
            agent = Rollout(POLICY, sample_seed(1, 0, rollouts.name, (task.task_id, schedule, sample)))
            seed = evaluation_seed(task.task_id, schedule)
            episode = play(task, REGIMES[rollouts.regime], seed, agent, traced=True)
            transcripts.append(transcript(episode, agent))
            rewards.append(episode.true_success)
    rng = np.random.default_rng([7, number])
    weights = rng.uniform(0.1, 2, len(rewards)) * (rng.random(len(rewards)) > 1 / 6)
    return Recorded(tuple(transcripts), tuple(map(float, rewards)), tuple(weights.tolist()))
