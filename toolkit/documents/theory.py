"""The paper's propositions as numbers, and what a registered rule could have seen."""

from typing import Annotated, TypedDict

from toolkit.structs import about


class ByDesignDocument(TypedDict):
    """A number in both designs."""

    independent: Annotated[float, about("Of the independent design.")]
    paired: Annotated[float, about("Of the paired design.")]


class SpuriousDocument(ByDesignDocument):
    """How often flips alone make an all-correct group's rewards vary: a share of such groups."""


class GradientDocument(TypedDict):
    """The gradient of a group, in units of the score."""

    trace: Annotated[ByDesignDocument, about("Of its covariance, score².")]
    mean_norm: Annotated[ByDesignDocument, about("Of its mean, score.")]


class BanditDocument(TypedDict):
    """The aligned bandit."""

    contrast_variance: Annotated[ByDesignDocument, about("Of the difference of two rewards, reward².")]
    mean_centred: Annotated[GradientDocument, about("With advantages that are centred.")]
    standardized: Annotated[GradientDocument, about("With advantages that are divided by their spread.")]
    clean_norm_squared: Annotated[float, about("Of the gradient without flips, score².")]
    score_spread: Annotated[float, about("score².")]


class DriftRatioDocument(TypedDict):
    """How far a step is expected to climb."""

    drift: Annotated[ByDesignDocument, about("In units of the learning rate.")]
    ratio: Annotated[float | None, about("Paired over independent; null where that is zero.")]


class DriftDocument(TypedDict):
    """The aligned bandit's drift."""

    mean_centred: DriftRatioDocument
    standardized: DriftRatioDocument


class LuckDocument(TypedDict):
    """What a paired group is worth where luck explains a share of the rewards' variance."""

    effective_group_size: Annotated[float, about("Independent rollouts that its mean reward is worth.")]
    contrast_replicates: Annotated[
        float | None,
        about("Independent differences that one of two rewards is worth; null where luck is all."),
    ]


class EqualVarianceDocument(TypedDict):
    """The independent batch whose gradient varies as much."""

    independent_groups: Annotated[float, about("Groups a step.")]


class ConditionDocument(TypedDict):
    """Both sides of the exact condition, score²."""

    left: Annotated[float, about("L: size of the clean group gradient.")]
    right: Annotated[float, about("R: spread of the true successes' scores, over G².")]
    ratio: Annotated[float | None, about("Left over right; null where that is zero.")]
    pairing_lowers_trace: Annotated[bool, about("Whether left is below right.")]


class FittedDocument(TypedDict):
    """What was fitted to a study, in the estimate's unit."""

    observed: Annotated[list[float], about("The seeds' differences.")]
    sampling_sd: Annotated[
        float, about("Standard deviation that the episodes alone would give a difference.")
    ]
    observed_sd_range: Annotated[
        tuple[float, float] | None,
        about("95% range of the seeds' standard deviation; null for a single seed."),
    ]
    seed_sd: Annotated[float, about("Standard deviation of the seeds' effects beyond the episodes'.")]
    variance_ratio: Annotated[float, about("How many times less a difference varies by shared samples.")]
    success: Annotated[
        dict[str, list[float]], about("The second arm's mean outcome at each step, by endpoint.")
    ]


class AssumedDocument(TypedDict):
    """What was assumed of simulated studies."""

    model: Annotated[str, about("Of an episode, in words.")]
    episode_sd: Annotated[
        float | None, about("Of an episode's score or amount; null where it succeeds or fails.")
    ]
    seed_sd: Annotated[float, about("Standard deviation of the seeds' effects.")]
    task_sd_at_most: Annotated[float, about("Of scores a share of their range, of amounts of their mean.")]
    tasks: Annotated[int | None, about("Of each set; null for the registered number.")]
    variance_ratio: Annotated[float, about("How many times less a difference varies by shared samples.")]
    simulations: Annotated[int, about("For each effect and number of seeds.")]
    rng_seed: Annotated[int, about("Seed of the simulations.")]


class SimulatedDocument(TypedDict):
    """What became of the simulated studies with one effect and number of seeds."""

    effect: Annotated[float, about("True mean difference, in the estimate's unit.")]
    seeds: Annotated[int, about("Seed pairs.")]
    pass_probability: Annotated[float, about("Share that the rule passed.")]
    monte_carlo_error: Annotated[float, about("Standard error of that.")]
    coverage: Annotated[
        float | None, about("Share whose registered interval held the true effect; null without an interval.")
    ]
    excludes_zero: Annotated[float | None, about("Share whose interval excluded zero.")]
    type_s: Annotated[
        float | None,
        about("Share of these whose estimate had the wrong sign; null where the effect is zero."),
    ]
    mean_estimate_passed: Annotated[float | None, about("Of those that passed; null where none did.")]
    task_sd: Annotated[dict[str, float], about("Standard deviation of the tasks' means, by endpoint.")]


class PowerDocument(TypedDict):
    """How often a registered rule would pass; simulated, it changes no verdict."""

    rule: Annotated[str, about("Name of the rule.")]
    study: Annotated[str, about("That was fitted.")]
    label: Annotated[str, about("That it changes no verdict, in words.")]
    fitted: FittedDocument
    assumed: AssumedDocument
    results: list[SimulatedDocument]
    warnings: Annotated[list[str], about("Intervals that cover clearly more or less than their level says.")]
    target: Annotated[float, about("Power to be reached.")]
    seeds_needed: Annotated[
        dict[str, int | None],
        about("Fewest of the simulated seeds that reach it, by effect; null: none does."),
    ]
