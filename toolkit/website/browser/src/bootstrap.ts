/**
 * The registered interval: percentile bootstrap over seed pairs and tasks. A task stands for all its schedules;
 * episodes are never pooled as independent samples.
 */

/** Differences of seed pairs and tasks as whole numbers over one denominator, so that every sum is exact. */
export interface Differences {
  /** A row a seed pair, a column a task. */
  numerators: Float64Array[];
  denominator: number;
}

export interface Resampled {
  low: number;
  high: number;
  /** Monte Carlo standard errors of the ends. */
  errors: [number, number];
  /** The mean of each resample, sorted. */
  means: Float64Array;
  level: number;
}

interface Resampling {
  crossing: "crossed" | "nested";
  level: number;
  resamples: number;
  seed: bigint;
}

// One more than the largest number drawn.
const RANGE = 2 ** 32;
// Doubles hold every whole number up to here.
const LARGEST_WHOLE = 2 ** 53;
// Numbers added up between two looks at the clock: some ten milliseconds.
const PORTION = 5_000_000;
// Errors on either side of an end over which its own error is measured; why, says toolkit/estimators/bootstrap.py.
const ERRORS_AROUND = 4;

/**
 * Resample.
 *
 * @param pause called between portions with the share that is done; may wait, or throw to stop
 */
export async function bootstrap(
  differences: Differences,
  how: Resampling,
  pause: (done: number) => Promise<void> = async () => {},
): Promise<Resampled> {
  const { numerators, denominator } = differences;
  const seeds = numerators.length;
  const tasks = numerators[0]?.length ?? 0;
  if (seeds < 2 || tasks < 2) throw new RangeError(`nothing to resample: ${seeds} seeds, ${tasks} tasks`);
  const largest = numerators.reduce((most, row) => row.reduce((m, n) => Math.max(m, Math.abs(n)), most), 0);
  const size = seeds * tasks;
  if (largest * size >= LARGEST_WHOLE) throw new RangeError("the sums are too large to be exact");
  const [ofSeeds, ofTasks] = [sfc32(how.seed, 1), sfc32(how.seed, 2)];
  const means = new Float64Array(how.resamples);
  const portion = Math.max(1, Math.floor(PORTION / (size + tasks)));
  for (let at = 0; at < how.resamples; at++) {
    // Crossed, one draw of tasks is shared by all drawn seeds; nested, they are drawn anew for each.
    const shared = how.crossing === "crossed" ? occurrences(tasks, ofTasks) : null;
    let total = 0;
    occurrences(seeds, ofSeeds).forEach((often, seed) => {
      const row = numerators[seed] as Float64Array;
      if (shared && often) total += often * dot(row, shared);
      else for (let i = 0; i < often; i++) total += dot(row, occurrences(tasks, ofTasks));
    });
    means[at] = total / (size * denominator);
    if (at % portion === portion - 1) await pause((at + 1) / how.resamples);
  }
  return percentiles(means, how.level);
}

/** How often each of `size` members occurs among as many draws with replacement. */
function occurrences(size: number, below: Below): Float64Array {
  const times = new Float64Array(size);
  for (let i = 0; i < size; i++) times[below(size)]! += 1;
  return times;
}

function dot(a: Float64Array, b: Float64Array): number {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += (a[i] as number) * (b[i] as number);
  return total;
}

/** The ends, and their errors from the slope of the order statistics around them; the means are sorted in place. */
function percentiles(means: Float64Array, level: number): Resampled {
  means.sort();
  const last = means.length - 1;
  const at = (place: number) => means[Math.min(Math.max(place, 0), last)] as number;
  const end = (tail: number) => {
    const [under, over] = [at(Math.floor(tail * last)), at(Math.ceil(tail * last))];
    return under + (tail * last - Math.floor(tail * last)) * (over - under);
  };
  const error = (tail: number) => {
    const one = Math.sqrt(means.length * tail * (1 - tail));
    const place = (step: number) => Math.min(Math.max(Math.round(tail * last + step), 0), last);
    const [below, above] = [place(-ERRORS_AROUND * one), place(ERRORS_AROUND * one)];
    return (one / Math.max(above - below, 1)) * (at(above) - at(below));
  };
  const [low, high] = [(1 - level) / 2, (1 + level) / 2];
  return { low: end(low), high: end(high), errors: [error(low), error(high)], means, level };
}

/** Ranks between each end and that of `others` other resamples, in standard errors of the difference of two ranks. */
export function ranksApart({ means, level }: Resampled, ends: [number, number], others: number): number[] {
  return ends.map((end, upper) => {
    const tail = (1 + (upper ? level : -level)) / 2;
    const rank = tail * (means.length - 1);
    // An end lies on all the ranks of its value at once.
    const [first, after] = [means.filter((mean) => mean < end).length, means.filter((mean) => mean <= end).length];
    const ranks = Math.max(first - rank, rank - after, 0);
    return ranks / Math.sqrt(means.length * tail * (1 - tail) * (1 + means.length / others));
  });
}

/** Draws a whole number from 0 to below a size, each exactly as likely as every other. */
type Below = (size: number) => number;

/**
 * Whole numbers drawn from an explicit seed: the generator sfc32 (Chris Doty-Humphrey's "small fast counter",
 * 128 bits of state, 32 a step). It is not numpy's PCG64, with which recorded intervals were drawn: the same seed
 * gives other resamples here, and ends that agree within their Monte Carlo errors only. Streams of one seed are
 * independent of each other.
 */
function sfc32(seed: bigint, stream: number): Below {
  let [a, b, c, counter] = [Number(seed & 0xffffffffn) | 0, Number((seed >> 32n) & 0xffffffffn) | 0, stream | 0, 1];
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 20; i++) next(); // until every bit of the state depends on every bit of the seed
  return (size) => {
    // The upper half of a product takes no division; the few drawn that would favour some numbers are drawn anew
    // (Lemire, "Fast random integer generation in an interval", 2019). Products below 2^53 are exact.
    for (;;) {
      const product = next() * size;
      const upper = Math.floor(product / RANGE);
      const lower = product - upper * RANGE;
      if (lower >= size || lower >= RANGE % size) return upper;
    }
  };
}
