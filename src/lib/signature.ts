import { createHmac } from "node:crypto";

/** `t=<unix seconds>,v1=<hex>`: the HMAC-SHA256 of `<t>.<body>`, which authenticates the sender and the time. */
export function signBody(secret: string, body: Uint8Array | string, atMs: number): string {
  const seconds = Math.floor(atMs / 1000);
  return `t=${seconds},v1=${bodyHash(secret, body, String(seconds)).toString("hex")}`;
}

/** The HMAC of such a signature. */
export function bodyHash(secret: string, body: Uint8Array | string, seconds: string): Buffer {
  return createHmac("sha256", secret).update(`${seconds}.`).update(body).digest();
}
