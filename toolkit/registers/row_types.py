"""Types of the rows that are read by the names of their columns; a test holds them to the schema."""

from datetime import datetime
from decimal import Decimal
from typing import NotRequired, TypedDict


class _OfRun(TypedDict):
    run_id: str


class _OfCell(_OfRun):
    condition: str
    arm: str
    seed: int


class RunRow(_OfCell):
    """A row of `runs`."""

    role: str
    fault_rate: NotRequired[Decimal]
    flip_rate: NotRequired[Decimal]
    scale_rewards: NotRequired[str]
    loss_type: NotRequired[str]
    steps: NotRequired[int]
    group_size: NotRequired[int]
    prompts_per_step: NotRequired[int]
    episodes: int
    training_groups: NotRequired[int]
    training_rollouts: NotRequired[int]
    attempts: NotRequired[int | None]
    status: str
    launched_at: NotRequired[datetime | None]
    registered: NotRequired[str | None]
    provider: NotRequired[str]
    accelerator: NotRequired[str | None]
    torch_version: NotRequired[str | None]
    vllm_version: NotRequired[str | None]
    code_commit: NotRequired[str | None]
    model_commit: NotRequired[str | None]
    recipe_sha256: NotRequired[str]
    register_commit: NotRequired[str | None]
    wall_time_s: NotRequired[float | None]
    peak_memory_gb: NotRequired[float | None]
    estimated_cost_usd: NotRequired[float | None]
    specification: NotRequired[str | None]


class LaunchRow(_OfRun):
    """A row of `launches`."""

    attempt: int
    launched_at: datetime
    ended_at: datetime | None
    from_step: int
    wall_time_s: float | None
    peak_memory_mb: float | None
    python: str
    platform: str
    code_version: str
    specification_sha256: str
    stack: NotRequired[str]
    accelerator: NotRequired[str | None]
    processes: NotRequired[int]
    kernels: NotRequired[str | None]
    step_seconds: NotRequired[list[float]]
    generation_seconds: NotRequired[list[float]]


class EvaluationRow(_OfCell):
    """A row of `evaluations`."""

    phase: str
    pool: str
    regime: str
    step: int
    episodes: int
    successes: NotRequired[int]
    score: NotRequired[float]
    missing: NotRequired[int]
    excluded: NotRequired[int]
    observed_successes: NotRequired[int]
    flipped: NotRequired[int]
    exposed: NotRequired[int]
    recovered: NotRequired[int | None]
    finished: NotRequired[int]
    budget_exceeded: NotRequired[int]
    calls: NotRequired[int]
    tokens: NotRequired[int]
    cost: NotRequired[float]
    tasks: NotRequired[int]
    episodes_per_task: NotRequired[int]
    task_set: NotRequired[str]


class GroupsSummaryRow(_OfCell):
    """A row of `groups_summary`."""

    groups: int
    all_correct: int
    spurious: int
    zero_variance: int
    mean_max_abs_advantage: float
    sharing_one_seed: int | None
    several_seeds: int | None


class LuckShareSummaryRow(_OfRun):
    """A row of `luck_share_summary`."""

    environment: str
    policy: str
    regime: str
    condition: str | None
    arm: str | None
    seed: int | None
    step: int
    pool: str | None
    target: str | None
    luck_share: float
    luck_share_pooled: float | None
    interval_low: Decimal | None
    interval_high: Decimal | None
    variance_between: float
    variance_within: float
    tasks: int
    tasks_defined: int


class ProbeTraceRow(TypedDict):
    """A row of `probe`."""

    trajectory: str
    step: int
    scored: str
    noise: str
    estimator: str
    condition_left: float | None
    condition_right: float | None
    identity_residual: float | None
    trace_paired: float
    trace_independent: float
    trace_stratified: float | None
    trace_within_paired: float
    trace_within_independent: float
    trace_within_stratified: float | None
    trace_between_paired: float
    trace_between_independent: float
    trace_between_stratified: float | None
    mean_norm_paired: float
    mean_norm_independent: float
    mean_norm_stratified: float | None
    reward_contrast_paired: float
    reward_contrast_independent: float
    reward_contrast_stratified: float | None
    cosine: float | None


class ProbeCheckpointRow(TypedDict):
    """A row of `probe_checkpoints`."""

    trajectory: str
    step: int
    scored: str
    adapter_sha256: str | None
    adapter_fingerprint: str
    coordinate_names_sha256: str
    spec_sha256: str
    code_commit: str | None
    coordinates: int
    clean_rollouts: int
    clean_successes: int
    diagnostic_rollouts: int
    masked_rollouts: int
    weight_mean: float
    weight_min: float
    weight_max: float
    reference_tokens: float


class ProbeIntervalRow(TypedDict):
    """A row of `probe_intervals`."""

    trajectory: str
    step: int
    scored: str
    noise: str
    estimator: str
    figure: str
    tasks: int
    level: float
    value: float | None
    low: float | None
    high: float | None
    standard_error: float | None
    corrected: float | None
    pure_noise: float | None
    debiased: float | None


class ProbeDriftRow(TypedDict):
    """A row of `probe_drift`."""

    trajectory: str
    step: int
    scored: str
    noise: str
    estimator: str
    prompts_per_step: int
    level: float
    drift_paired: float | None
    drift_independent: float | None
    ratio: float | None
    corrected: float | None
    low: float | None
    high: float | None


class EventRow(TypedDict):
    """A row of `events`."""

    occurred_at: datetime
    precision: str
    kind: str
    event: str
    detail: str | None
    source: str


class EpisodeRow(_OfRun):
    """A row of `episodes`."""

    phase: str
    pool: str
    regime: str
    step: int
    task: int
    schedule: int
    schedule_seed: NotRequired[int]
    true_success: NotRequired[bool]
    score: NotRequired[float]
    missing: NotRequired[bool]
    excluded: NotRequired[bool]
    observed_reward: NotRequired[bool]
    calls: NotRequired[int]
    tokens: NotRequired[int]
    cost: NotRequired[float]
    ended: NotRequired[str]
    world_changed: NotRequired[bool]
    transient: NotRequired[int]
    rate_limit: NotRequired[int]
    outage: NotRequired[int]
    stale_read: NotRequired[int]
    truncation: NotRequired[int]
    timeout_after_commit: NotRequired[int]
    field_dropout: NotRequired[int]
    retry_after_transient_due: NotRequired[int]
    retry_after_transient_made: NotRequired[int]
    wait_after_rate_limit_due: NotRequired[int]
    wait_after_rate_limit_made: NotRequired[int]
    reread_after_stale_due: NotRequired[int]
    reread_after_stale_made: NotRequired[int]
    paginate_after_truncation_due: NotRequired[int]
    paginate_after_truncation_made: NotRequired[int]


class GroupRow(_OfRun):
    """A row of `groups`."""

    step: int
    position: int
    task: int
    regime: str
    schedule_seeds: list[int]
    true_successes: list[bool]
    observed_rewards: list[bool]
    advantages: list[float]
    decisions: NotRequired[int]
    exposed: int
    zero_variance: bool
    spurious: bool
    tokens: NotRequired[list[int]]
    importance_weights: NotRequired[list[float]]


class StepRow(_OfRun):
    """A row of `steps`."""

    step: int
    loss: float | None
    grad_norm: float | None
    entropy: float | None
    clipped: float | None
    importance_weight_mean: NotRequired[float]
    importance_weight_min: NotRequired[float]
    importance_weight_max: NotRequired[float]


class LuckShareRow(_OfRun):
    """A row of `luck_share`."""

    step: int
    pool: str
    regime: str
    task: int
    schedule: int
    schedule_seed: int
    true_successes: list[bool]
    observed_rewards: list[bool]


class CheckpointRow(_OfRun):
    """A row of `checkpoints`."""

    step: int
    parameters: list[float]
    first_moment: list[float]
    second_moment: list[float]
    sha256: str


class PoolTaskRow(TypedDict):
    """A row of `task_pools`."""

    pool: str
    index: int
    task_id: str
    world_seed: NotRequired[str]
    prompt: NotRequired[str]
    attributes: NotRequired[str]
    templates: NotRequired[str]
    forms: NotRequired[str]
    sub_requests: NotRequired[int]
    reads: NotRequired[int]
    writes: NotRequired[int]
    budget: NotRequired[int]
    plan: NotRequired[str]
    expected: NotRequired[str]
    world: NotRequired[str]
    sha256: NotRequired[str]


class GramRow(TypedDict):
    """A row of `probe_gram`."""

    trajectory: str
    step: int
    scored: str
    noise: str
    pool: str
    regime: str
    task: int
    rewards: list[bool]
    tokens: list[int]
    weights: list[float]
    gram: list[float]
    products_mc: list[float]
    products_sw: list[float]


class ProbeCleanTaskRow(TypedDict):
    """A row of `probe_clean_tasks`."""

    trajectory: str
    step: int
    scored: str
    task_id: str
    successes: int
    condition_left: float
    condition_right: float
