"""How a registered interval may be made."""

PERCENTILE = "percentile bootstrap"
# Intervals made of the differences of tasks alone, averaged over seeds.
T_OVER_TASKS = "t over tasks"
BCA = "bca bootstrap"
OVER_TASKS = (T_OVER_TASKS, BCA)
# Intervals made of the values of seeds alone: no task is resampled, and nothing is crossed.
SEED_BOOTSTRAP = "seed bootstrap"
T_OVER_SEEDS = "t over seeds"
BY_SEED = (SEED_BOOTSTRAP, T_OVER_SEEDS)
METHODS_SAY = {
    PERCENTILE: "seed pairs and tasks are drawn with replacement, `crossed` or `nested`: both are samples, "
    "two of each at least; crossed is far too wide where seeds differ by their episodes alone",
    T_OVER_TASKS: "Student's t of the tasks' differences, averaged over seeds, schedules and steps: tasks "
    "are the sample, policies are fixed and seeds play them again; one seed will do; too narrow where each "
    "seed is a training run of its own",
    BCA: "tasks are drawn with replacement, and the ends corrected for bias and skewness: as `t over tasks`, "
    "for differences that are skewed; a little narrower with few tasks",
    T_OVER_SEEDS: "Student's t of the seeds' differences: training runs are the sample, tasks are fixed; two "
    "seeds at least; too narrow for other tasks where many seeds meet tasks on which the effect differs",
    SEED_BOOTSTRAP: "seeds are drawn with replacement, once for all that a formula reads: the only method "
    "for a statistic; too narrow with fewer than some twenty seeds",
}
"""Method of an interval → what it does, and when its level holds."""
DRAWN = (PERCENTILE, SEED_BOOTSTRAP, BCA)
"""Methods that draw at random."""
