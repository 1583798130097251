"""TRL: `python with_trl.py paired MODEL`, then `toolkit pairing verify groups.jsonl`."""

import sys

from datasets import Dataset
from files import Files, copied
from trl import GRPOConfig, GRPOTrainer

from toolkit.pairing.trl import paired

NAMES = ["notes", "plan"]
noise = paired(Files, design=sys.argv[1], regime="faults_p025", seed=0, record="groups.jsonl", task="name")
GRPOTrainer(
    sys.argv[2],
    reward_funcs=[noise.observed(lambda environments, name, **_: list(map(copied, environments, name)))],
    args=GRPOConfig(
        num_generations=4, per_device_train_batch_size=8, max_steps=2, max_completion_length=64, use_cpu=True
    ),
    train_dataset=Dataset.from_dict(
        {"prompt": [[{"role": "user", "content": f"Copy {name}."}] for name in NAMES], "name": NAMES}
    ),
    environment_factory=noise,
    callbacks=[noise],
).train()
