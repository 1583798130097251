# Each task once a seed: the careful arm solves 8 of 12 tasks with every seed, the plain one 6.
echo strategy,seed,task,score,success,tokens,started_at
for arm in careful plain; do for seed in 0 1 2; do for task in $(seq 0 11); do
  if [ $arm = careful ]; then won=$(( (task + seed) % 3 > 0 )); else won=$(( (task + seed) % 2 > 0 )); fi
  echo "$arm,$seed,t$task,$(( task % 4 + won )).5,$won,$(( 100 + task )),2999-01-01T00:00:00Z"
done; done; done
