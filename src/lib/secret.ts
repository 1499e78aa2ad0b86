import { hash, randomBytes, timingSafeEqual } from "node:crypto";

const SECRET_BYTES = 32;

/** 256 random bits, as 64 hex digits. */
export function makeSecret(): string {
  return randomBytes(SECRET_BYTES).toString("hex");
}

export function hashSecret(secret: string): Uint8Array {
  return hash("sha256", secret, "buffer");
}

/** Compares in constant time. */
export function hashesEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
