/** Bytes: as base64 and hexadecimal digits, and hashed by WebCrypto. */

export type Bytes = Uint8Array<ArrayBuffer>;

export function fromBase64(text: string): Bytes {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

export async function sha(algorithm: string, bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest(algorithm, bytes));
}
