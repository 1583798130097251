/**
 * Whole numbers drawn from an explicit seed: the generator sfc32 (Chris Doty-Humphrey's "small fast counter",
 * 128 bits of state, 32 a step). It is not numpy's PCG64, with which recorded intervals were drawn: the same seed
 * gives other resamples here, and ends that agree within their Monte Carlo errors only.
 */

const RANGE = 2 ** 32;

export class Random {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;

  /** Streams of one seed are independent of each other. */
  constructor(seed: bigint, stream: number) {
    this.a = Number(seed & 0xffffffffn) | 0;
    this.b = Number((seed >> 32n) & 0xffffffffn) | 0;
    this.c = stream | 0;
    for (let i = 0; i < 20; i++) this.next(); // until every bit of the state depends on every bit of the seed
  }

  /** 32 random bits, as a whole number that is not negative. */
  private next(): number {
    const sum = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (((this.c << 21) | (this.c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /**
   * A whole number from 0 to below `size`, each exactly as likely as every other.
   *
   * The upper half of a product takes no division; the few drawn that would favour some numbers are drawn anew
   * (Lemire, "Fast random integer generation in an interval", 2019). Products below 2^53 are exact.
   */
  below(size: number): number {
    for (;;) {
      const product = this.next() * size;
      const upper = Math.floor(product / RANGE);
      const lower = product - upper * RANGE;
      if (lower >= size || lower >= RANGE % size) return upper;
    }
  }
}
