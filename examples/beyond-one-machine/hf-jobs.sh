#!/bin/bash
# A job of Hugging Face Jobs a run of a registered study:
#
#   python3 -m pip wheel --no-deps --wheel-dir dist .
#   hf-jobs.sh STUDY OWNER/BUCKET RUN...
#   FLAVOR=h200 TIMEOUT=24h EXTRA=gpu hf-jobs.sh STUDY OWNER/BUCKET RUN...    # each a language model, on one GPU
#
# The runs are kept in the bucket. A job that ran into its time limit is started again with the same command, and
# its run goes on from its newest checkpoint. The wheel holds the shipped registrations; mount a project of your own
# with one more --volume, and go there before the command.

set -euo pipefail
study=${1:?the study, such as embedded} bucket=${2:?OWNER/BUCKET}
shift 2

for run in "$@"; do
  hf jobs run --detach --name "$run" --flavor "${FLAVOR:-cpu-basic}" --timeout "${TIMEOUT:-1h}" \
    --volume "hf://buckets/$bucket:/study" --volume "./dist:/dist" \
    --env "STUDY=$study" --env "RUN=$run" --env "FOLDER=/study/$study" \
    --env "EXTRA=${EXTRA:-}" \
    python:3.12 bash -c 'python3 -m pip install --quiet "$(echo /dist/*.whl)${EXTRA:+[$EXTRA]}" &&
      exec toolkit study run "$STUDY" --run "$RUN" --folder "$FOLDER" --processes 1 --keep-complete'
done
