/**
 * The one-step bandit, summed exactly over what can happen to one group.
 *
 * A rollout succeeds with probability p = σ(θ) and scores a - p. Everything depends on k, how many of the G truly
 * succeeded, and on m, how many of those were graded a success. A rollout's score minus the group's mean score is
 * 1 - k/G for a success and -k/G for a failure, so the group gradient (1/G) Σ R (S - S̄) is m(G - k)/G².
 *
 * Source: paper, sections "The exact condition" and "The aligned-scalar bandit".
 */

/** A quantity under both designs. */
export interface ByDesign {
  independent: number;
  paired: number;
}

export interface Moments {
  trace: ByDesign;
  mean_norm: ByDesign;
}

export interface Bandit {
  contrast_variance: ByDesign;
  mean_centred: Moments;
  standardized: Moments;
  clean_norm_squared: number;
  score_spread: number;
}

const EPSILON = 1e-4; // added to the standard deviation

/** Probabilities of 0 to n successes in n trials, from the logarithms of factorials: no term overflows. */
export function binomial(trials: number, chance: number): number[] {
  if (chance <= 0) return Array.from({ length: trials + 1 }, (_, k) => (k === 0 ? 1 : 0));
  if (chance >= 1) return Array.from({ length: trials + 1 }, (_, k) => (k === trials ? 1 : 0));
  const logs = [0];
  for (let n = 1; n <= trials; n += 1) logs.push((logs[n - 1] ?? 0) + Math.log(n));
  const at = (n: number): number => logs[n] ?? 0;
  return Array.from({ length: trials + 1 }, (_, k) =>
    Math.exp(at(trials) - at(k) - at(trials - k) + k * Math.log(chance) + (trials - k) * Math.log1p(-chance)),
  );
}

/** The bandit at a logit θ, a group size G >= 2 and a flip rate q in [0, 1]. */
export function bandit(logit: number, size: number, flipRate: number): Bandit {
  const p = 1 / (1 + Math.exp(-logit));
  const kept = 1 - flipRate;
  const successes = binomial(size, p);
  const graded = successes.map((_, k) => binomial(k, kept));
  const centred = (): number => 1;
  const scaled = (m: number): number => Math.sqrt((m * (size - m)) / (size * (size - 1))) + EPSILON;

  const moments = (denominator: (m: number) => number): Moments => {
    const alone = { mean: 0, square: 0 };
    const together = { mean: 0, square: 0 };
    successes.forEach((chance, k) => {
      const gradient = (m: number): number => (m * (size - k)) / (size * size) / denominator(m);
      graded[k]?.forEach((part, m) => add(alone, chance * part, gradient(m)));
      add(together, chance * kept, gradient(k)); // a shared flip leaves no success, and no gradient
    });
    const variance = ({ mean, square }: Sums): number => square - mean * mean;
    return {
      trace: { independent: variance(alone), paired: variance(together) },
      mean_norm: { independent: Math.abs(alone.mean), paired: Math.abs(together.mean) },
    };
  };

  const sum = (term: (k: number) => number): number => successes.reduce((all, chance, k) => all + chance * term(k), 0);
  const observed = p * kept;
  return {
    contrast_variance: { independent: 2 * observed * (1 - observed), paired: kept * 2 * p * (1 - p) },
    mean_centred: moments(centred),
    standardized: moments(scaled),
    clean_norm_squared: sum((k) => ((k * (size - k)) / (size * size)) ** 2),
    score_spread: sum((k) => k * (1 - k / size) ** 2) / (size * size),
  };
}

interface Sums {
  mean: number;
  square: number;
}

function add(sums: Sums, weight: number, value: number): void {
  sums.mean += weight * value;
  sums.square += weight * value * value;
}

/** How often flips alone make an all-correct group's rewards vary, under the independent design. */
export function spurious(flipRate: number, size: number): number {
  return 1 - (1 - flipRate) ** size - flipRate ** size;
}
