/** Exact numbers: a quotient of two whole numbers of any size, always in lowest terms. */

const WRITTEN = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?(?:\/(\d+))?$/;

/** The greatest common divisor. */
export function greatest(a: bigint, b: bigint): bigint {
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}

export class Fraction {
  /** Above and below the line; below is positive. */
  private constructor(readonly above: bigint, readonly below: bigint) {}

  static of(above: bigint | number, below: bigint | number = 1): Fraction {
    let [a, b] = [BigInt(above), BigInt(below)];
    if (b === 0n) throw new RangeError("a quotient over zero");
    if (b < 0n) [a, b] = [-a, -b];
    const shared = greatest(a < 0n ? -a : a, b);
    return shared === 1n ? new Fraction(a, b) : new Fraction(a / shared, b / shared);
  }

  /** Read `71/1920`, `-0.03` or `1.5e-7`, exactly as written. */
  static read(text: string): Fraction {
    const found = WRITTEN.exec(text);
    if (!found) throw new SyntaxError(`no number: ${text}`);
    const [, sign, whole, decimals = "", exponent = "0", below = "1"] = found;
    const digits = BigInt(`${whole}${decimals}`) * (sign === "-" ? -1n : 1n);
    const shift = Number(exponent) - decimals.length;
    const power = 10n ** BigInt(Math.abs(shift));
    return shift < 0 ? Fraction.of(digits, power * BigInt(below)) : Fraction.of(digits * power, BigInt(below));
  }

  /** A stored number exactly; a double counts as the shortest decimal that prints it. */
  static stored(value: number | bigint | string): Fraction {
    return typeof value === "bigint" ? Fraction.of(value) : Fraction.read(String(value));
  }

  /** A double as the whole number of binary parts that it is. */
  static ofDouble(value: number): Fraction {
    let below = 1n;
    while (!Number.isInteger(value)) {
      value *= 2; // exact: only the exponent changes
      below *= 2n;
    }
    return Fraction.of(BigInt(value), below);
  }

  plus(other: Fraction): Fraction {
    return Fraction.of(this.above * other.below + other.above * this.below, this.below * other.below);
  }

  minus(other: Fraction): Fraction {
    return Fraction.of(this.above * other.below - other.above * this.below, this.below * other.below);
  }

  times(other: Fraction): Fraction {
    return Fraction.of(this.above * other.above, this.below * other.below);
  }

  over(other: Fraction): Fraction {
    return Fraction.of(this.above * other.below, this.below * other.above);
  }

  abs(): Fraction {
    return this.above < 0n ? new Fraction(-this.above, this.below) : this;
  }

  /** Negative, zero or positive, as this number is less than, equal to or greater than another. */
  compare(other: Fraction): number {
    const difference = this.above * other.below - other.above * this.below;
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  }

  get isZero(): boolean {
    return this.above === 0n;
  }

  /** To about 17 digits: for showing and for drawing, never for deciding. */
  toNumber(): number {
    const [a, b] = [Number(this.above), Number(this.below)];
    if (Number.isSafeInteger(a) && Number.isSafeInteger(b)) return a / b;
    const bits = (n: bigint) => n.toString(2).length;
    const size = this.above < 0n ? -this.above : this.above;
    const shift = 60 - bits(size) + bits(this.below); // the quotient then has 60 bits or so
    const scaled = shift >= 0 ? (size << BigInt(shift)) / this.below : size / (this.below << BigInt(-shift));
    return (this.above < 0n ? -1 : 1) * Number(scaled) * 2 ** -shift;
  }

  toString(): string {
    return this.below === 1n ? `${this.above}` : `${this.above}/${this.below}`;
  }
}

export const ZERO = Fraction.of(0);

export function sum(values: readonly Fraction[]): Fraction {
  return values.reduce((total, value) => total.plus(value), ZERO);
}

export function mean(values: readonly Fraction[]): Fraction {
  return sum(values).over(Fraction.of(values.length));
}
