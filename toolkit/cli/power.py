"""`toolkit power`: what a registered rule could have seen."""

from __future__ import annotations

import math
import time
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from toolkit import cases
from toolkit.cli.options import STUDY, argument, command, json_option, offer_rules, offer_studies, option
from toolkit.cli.output import counted, print_json, print_table, say_line
from toolkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.drafting.power import Components, Power
    from toolkit.drafting.simulation import Outcome
    from toolkit.rules.rules import Rule

MORE_SEEDS = (5, 10, 20)
MOST_SEEDS = 50
MOST_SIMULATIONS = 100_000
SIMULATIONS = 400
"""As many as take less than twenty seconds of a rule whose interval is a bootstrap, on a laptop."""
MORE = 10
"""How many times more simulations are offered."""
UP_TO_SECONDS = 100
"""What takes longer is said in minutes."""


class Finite(click.FloatRange):
    """A number in a range; what is no number is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; minus zero is zero."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number + 0.0


@command()
def power(
    *,
    rule: str = argument(shell_complete=offer_rules),
    study: str | None = option(
        metavar=STUDY,
        shell_complete=offer_studies,
        help="Study to fit; default: `published`, or the only one here.",
    ),
    effects: tuple[float, ...] = option(
        "--effect",
        type=Finite(),
        multiple=True,
        help="True mean difference, in the estimate's unit; default: zero, the threshold and, if that is "
        "positive, twice the threshold.",
    ),
    seeds: tuple[int, ...] = option(
        type=click.IntRange(1, MOST_SEEDS),
        multiple=True,
        help="Seed pairs; default: the registered number, 5, 10 and 20, or 1 where intervals and tests are "
        "over tasks.",
    ),
    seed_sd: float | None = option(
        type=Finite(0), help="Standard deviation of the seeds' effects; default: fitted to the study."
    ),
    task_sd: float = option(
        type=Finite(0, 0.5),
        default=0.25,
        help="Standard deviation of a task's success rate, which summary figures do not give; for scores a "
        "share of their range, for amounts of their mean.",
    ),
    episode_sd: float | None = option(
        type=Finite(0),
        help="Standard deviation of an episode's score or amount around its task's mean, in its unit; "
        "default: fitted to the recorded differences of tasks; without episode rows half the scores' range.",
    ),
    variance_ratio: float | None = option(
        type=Finite(1, 1_000_000),
        metavar="R",
        help="Factor by which shared samples reduce the variance of a difference; default: fitted to a study "
        "that shares them, else 1.",
    ),
    tasks: int | None = option(
        type=click.IntRange(2, 5000), help="Tasks per set; default: the registered number."
    ),
    simulations: int = option(
        type=click.IntRange(10, MOST_SIMULATIONS),
        default=SIMULATIONS,
        help="Simulated studies for each effect and each number of seeds.",
    ),
    target: float = option(type=Finite(0.01, 0.99), default=0.8, help="Power to reach."),
    rng_seed: int = option(type=click.IntRange(0, 2**32), default=1, help="Seed of the simulations."),
    as_json: bool = json_option,
) -> None:
    """Simulate RULE as registered: how often it passes, and how often its interval covers the true effect.

    Each simulated study is decided by the rule's own tests. The learning curve and the spread between seeds
    are fitted to a study's registers. The effect is on the rule's estimate; the gap between the arms opens at
    the first training step and is the same for every task, so a final test sees slightly more of it than an
    area under the curve. With --variance-ratio the arms share their samples (`sampling = "shared"` in the
    matrix); measure first how much that gains.

    Successes are binomial at their task's rate. Scores with a registered range are Beta-distributed on it;
    calls, tokens and cost are gamma-distributed. Both have their task's mean and the standard deviation of
    --episode-sd.

    A warning names an interval whose coverage differs from its level by more than two percentage points and
    by more than chance explains; few simulations detect only large errors.

    \b
    Examples:
      toolkit power H2a --simulations 200
      toolkit power H2a --effect 0.03 --seeds 3 --simulations 200 --json
      toolkit power H2a --effect 0.03 --variance-ratio 16 --simulations 200
      toolkit power H5 --effect 0 --seeds 3 --simulations 100
    """
    from toolkit.drafting import simulation
    from toolkit.drafting.power import fit, power_document, simulate

    study = study or cases.usual_study()
    (case,) = cases.load_cases((study,))
    registered = case.book.meant(rule)
    rule = registered.id
    with counted("power") as (watch, _):
        watch(0, 1, "fitting")
        components = fit(
            case.book,
            case.study,
            rule,
            task_sd=task_sd,
            rng_seed=rng_seed,
            variance_ratio=variance_ratio,
            episode_sd=episode_sd,
        )
        asked = tuple(dict.fromkeys(effects)) or _effects(registered)
        ratio = variance_ratio or components.variance_ratio
        spread = components.seed_sd if seed_sd is None else seed_sd
        more = () if simulation.takes_one_seed(case.book, registered) else MORE_SEEDS
        chosen = tuple(dict.fromkeys(seeds or (len(components.observed), *more)))
        simulated: list[Power] = []
        started = time.perf_counter()
        for effect, number in (cells := tuple(product(asked, chosen))):
            watch(len(simulated), len(cells), f"effect {effect:+.3f}, {number} seeds")
            design = simulation.Design(
                effect, spread, task_sd, number, tasks, simulations, rng_seed, variance_ratio=ratio
            )
            simulated.append(simulate(case.book, rule, components, design))
        seconds = time.perf_counter() - started
    if as_json:
        print_json(power_document(registered, study, components, simulated, target))
    else:
        _show(registered, study, components, simulated, target)
        say_line(_precision(simulated, seconds))


def _precision(found: Sequence[Power], seconds: float) -> str:
    """Return how exact the shares of simulated studies are, and what more of them give and take."""
    simulations = found[0].design.simulations
    # Where all pass, or none does, the share is not known exactly: as if one more had done otherwise.
    shares = [p.pass_probability if 0 < p.pass_probability < 1 else 1 / (simulations + 2) for p in found]
    error = 100 * max(math.sqrt(share * (1 - share) / simulations) for share in shares)
    many = min(MORE * simulations, MOST_SIMULATIONS)
    exact = f"simulated {simulations:,} times, which gives shares to ±{error:.1f} points (a standard error)"
    if many == simulations:
        return exact
    takes = seconds * many / simulations
    less = error * math.sqrt(simulations / many)
    return f"{exact}; --simulations {many} gives ±{less:.1f} and takes about {_in_words(takes)}"


def _in_words(seconds: float) -> str:
    if seconds < UP_TO_SECONDS:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} minutes"


def _effects(rule: Rule) -> tuple[float, ...]:
    threshold = float(rule.threshold or 0)
    if not threshold:
        raise UsageError(f"rule {rule.id} has no threshold to take effects from", expected="--effect NUMBER")
    return (0.0, threshold, 2 * threshold) if threshold > 0 else (0.0, threshold)


def _seeds(number: int) -> str:
    return "1 seed" if number == 1 else f"{number} seeds"


def _spread_text(components: Components, spread: tuple[float, float] | None) -> str:
    seeds = _seeds(len(components.observed))
    if spread is None:
        return f"{seeds} says nothing of the spread between seeds; 0 is assumed, --seed-sd assumes another"
    known = f"{spread[0]:.3f} to {spread[1]:.3f}"
    return (
        f"from {seeds} the spread of differences between seeds is known as {known} (95%): "
        "simulate others, too, with --seed-sd"
    )


def _show(rule: Rule, study: str, components: Components, found: list[Power], target: float) -> None:
    from toolkit.drafting.power import LABEL, harder, needed, share, spread_range, warnings

    title = f"{rule.id}   {rule.title}   fitted to {study}; {LABEL}"
    headings = ("effect", "seeds", "passes", "±", "interval covers", "excludes zero", "wrong sign")
    rows = [
        (
            f"{p.design.effect:+.3f}",
            str(p.design.seeds),
            f"{p.pass_probability:.3f}",
            f"{p.monte_carlo_error:.3f}",
            _rate(share(p.covered, p.design.simulations)),
            _rate(share(p.excluded_zero, p.design.simulations)),
            _rate(share(p.wrong_sign, p.excluded_zero)),
        )
        for p in found
    ]
    print_table(headings, rows, title, numbers=True)
    say_line(_spread_text(components, spread_range(components.observed)))
    say_line(
        f"seed sd {found[0].design.seed_sd:.4f} (fitted: {components.seed_sd:.4f}, of the observed "
        f"differences' spread beyond the episodes' own {components.sampling_variance**0.5:.4f}); task sd at "
        f"most {found[0].design.task_sd:g}{_share_of(components.outcome)}, assumed"
    )
    say_line(f"assumed: {found[0].assumed}")
    if (ratio := found[0].design.variance_ratio) > 1:
        say_line(f"shared samples: episodes make a difference vary {ratio:g} times less than own ones would")
    for effect in dict.fromkeys(
        p.design.effect for p in found if p.design.effect
    ):  # at none, a pass is an error
        number = needed(found, effect, target)
        enough = _seeds(number) if number else "no number of seeds simulated here is enough"
        say_line(f"to pass with probability {target:g} at {effect:+.3f}: {enough}")
        if effect > 0 and harder(found, effect):
            say_line("  more seeds make this rule harder to pass here, not easier")
    for warning in warnings(rule, found):
        say_line(f"warning: {warning}")


def _share_of(outcome: Outcome) -> str:
    if outcome.is_success:
        return ""
    return " of the mean" if math.isinf(outcome.high) else " of the range"


def _rate(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"
