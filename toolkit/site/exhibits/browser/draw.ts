/**
 * The draw of an event, recomputed by the reader's own browser: what a schedule's seed says about an event key.
 *
 *     message = "noise/v1" 0x00 seed (8 bytes) fields      a field: tag ('i' or 's'), length (4 bytes), payload
 *     gate, type, magnitude = the first three words of 8 bytes of SHA-256(message), >> 11, · 2^-53
 *
 * Numbers are big endian, text is UTF-8 in normal form C.
 */

export type Fault = string;
export type Kind = string;

export interface Draw {
  /** 32 bytes in hexadecimal. */
  digest: string;
  gate: number;
  type: number;
  magnitude: number;
}

export interface Regime {
  name: string;
  about: string;
  fault_rate: number;
  flip_rate: number;
  /** Whole weights of the fault types; null where there are no random faults. */
  weights: Record<Fault, number> | null;
  /** Whether the first attempt of every write fails, and nothing else. */
  challenge: boolean;
}

/** What Python says of tools, faults and regimes. */
export interface Rules {
  tools: Record<string, { kind: Kind; resource: string | null }>;
  applies: Record<Kind, Fault[]>;
  about: Record<Fault, string>;
  /** The resource of a tool whose calls name no record. */
  any_resource: string;
  longest_rate_limit: number;
  regimes: Regime[];
}

const LIMIT = 1n << 64n;

/** The draw of a key: tool, resource and repeat index, or the grader alone. */
export async function draw(seed: bigint, key: readonly (string | bigint)[]): Promise<Draw> {
  const message = [...new TextEncoder().encode("noise/v1"), 0, ...eight(seed), ...key.flatMap(field)];
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(message)));
  const words = new DataView(digest.buffer);
  const unit = (at: number): number => Number(words.getBigUint64(at) >> 11n) * 2 ** -53;
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { digest: hex, gate: unit(0), type: unit(8), magnitude: unit(16) };
}

function eight(number: bigint): number[] {
  if (number < 0n || number >= LIMIT) throw new RangeError(`a whole number from 0 to 2^64 - 1 is expected, found ${number}`);
  return Array.from({ length: 8 }, (_, at) => Number((number >> BigInt(56 - 8 * at)) & 255n));
}

function field(value: string | bigint): number[] {
  const isText = typeof value === "string";
  const payload = isText ? [...new TextEncoder().encode(value.normalize("NFC"))] : eight(value);
  return [isText ? 0x73 : 0x69, ...eight(BigInt(payload.length)).slice(4), ...payload];
}

/** The fault that a call meets in a regime; null for none. */
export function fault(rules: Rules, regime: Regime, tool: string, repeat: bigint, drawn: Draw): Fault | null {
  const kind = rules.tools[tool]?.kind;
  if (kind === undefined) return null;
  if (regime.challenge) return kind === "write" && repeat === 0n ? "transient" : null;
  const weights = regime.weights;
  if (!weights || drawn.gate >= regime.fault_rate) return null;
  const applicable = (rules.applies[kind] ?? []).filter((name) => name in weights);
  const total = applicable.reduce((sum, name) => sum + (weights[name] ?? 0), 0);
  let reached = 0;
  for (const name of applicable) {
    reached += weights[name] ?? 0;
    if (drawn.type < reached / total) return name;
  }
  return null;
}

/** For how many seconds a rate limit lasts. */
export function retryAfter(rules: Rules, drawn: Draw): number {
  return 1 + Math.floor(drawn.magnitude * rules.longest_rate_limit);
}

/** For tests: the same functions, without a page. */
(globalThis as Record<string, unknown>)["toolkitDraw"] = { draw, fault, retryAfter };
