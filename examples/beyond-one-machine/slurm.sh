#!/bin/bash
# A run of a registered study a task of a job array:
#
#   export STUDY=embedded FOLDER=/shared/embedded
#   sbatch --array=0-157%32 slurm.sh
#
# A run that trains a language model has a GPU of its own, and sees no other:
#
#   sbatch --gpus=1 --cpus-per-task=8 --mem=64G --time=24:00:00 --array=0-25%8 slurm.sh
#
# What was interrupted, requeued or submitted again goes on from its newest checkpoint; a complete run is left as it
# is. A run of the embedded policy takes seconds, one processor and a quarter of a gigabyte.
#
#SBATCH --job-name=toolkit-study
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%A_%a.out

set -euo pipefail
: "${STUDY:?the study, such as embedded}" "${FOLDER:?a folder that all machines share}"

# `study status` lists the registered runs in an order of their own, the same for every task.
run=$(
  toolkit study status "$STUDY" --folder "$FOLDER" --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][int(sys.argv[1])]["run_id"])' "$SLURM_ARRAY_TASK_ID"
)
# In place of this shell, so that Slurm's signals reach it.
exec toolkit study run "$STUDY" --run "$run" --folder "$FOLDER" --processes 1 --keep-complete
