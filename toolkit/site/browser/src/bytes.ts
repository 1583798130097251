/** Bytes: as base64, hexadecimal digits and text, and hashed by WebCrypto. */

export type Bytes = Uint8Array<ArrayBuffer>;

export function fromBase64(text: string): Bytes {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether this browser hashes: only pages from a folder, localhost or https. */
export function canHash(): boolean {
  return !!(globalThis.crypto as Crypto | undefined)?.subtle;
}

export async function sha(algorithm: string, bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest(algorithm, bytes));
}

/** SHA-256 in hexadecimal digits. */
export async function sha256(bytes: Bytes): Promise<string> {
  return hex(await sha("SHA-256", bytes));
}
