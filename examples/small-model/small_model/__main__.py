"""`python -m small_model FOLDER`: makes a small model of Qwen3.5's architecture, and teaches it the work.

What was begun in the folder is gone on with.
"""

from small_model.command import teach
from small_model.teaching import warm_start

BATCHES = 20_000

if __name__ == "__main__":
    teach("python -m small_model", __doc__, warm_start, BATCHES)
