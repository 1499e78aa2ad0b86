import { describe, expect, test } from "vitest";
import { createKey, keyAccepts, keyView, parseKey, revokeKey, rotateKey } from "./key.ts";

const now = Date.UTC(2026, 10, 15);
const made = () => createKey({ name: "ci", scopes: ["events:read"], plan: "pro", expiresAt: null, now });

describe("a key", () => {
  test("opens with the text it was made with, and its own id is in it", () => {
    const { key, secret } = made();
    const parsed = parseKey(secret)!;
    expect(parsed.id).toBe(key.id);
    expect(keyAccepts(key, parsed.secret, now)).toBe(true);
    expect(keyAccepts(key, "0".repeat(64), now)).toBe(false);
  });

  test("keeps nothing of its secret in clear", () => {
    const { key, secret } = made();
    const kept = JSON.stringify({ ...key, secretHash: Buffer.from(key.secretHash).toString("hex") });
    expect(kept).not.toContain(parseKey(secret)!.secret);
    expect(JSON.stringify(keyView(key, undefined, now))).not.toContain(Buffer.from(key.secretHash).toString("hex"));
  });

  test("is refused from the moment it expires, and once revoked", () => {
    const { key, secret } = createKey({ name: "x", scopes: [], plan: "starter", expiresAt: now + 1000, now });
    const text = parseKey(secret)!.secret;
    expect(keyAccepts(key, text, now + 999)).toBe(true);
    expect(keyAccepts(key, text, now + 1000)).toBe(false);
    expect(keyAccepts(revokeKey(key, now), text, now)).toBe(false);
  });

  test("rotated without grace refuses its old secret at once; with grace until it ends", () => {
    const first = made();
    const old = parseKey(first.secret)!.secret;
    const abrupt = rotateKey(first.key, { graceMs: 0, now });
    expect(keyAccepts(abrupt.key, old, now)).toBe(false);
    expect(keyAccepts(abrupt.key, parseKey(abrupt.secret)!.secret, now)).toBe(true);
    const gentle = rotateKey(first.key, { graceMs: 5000, now });
    expect(keyAccepts(gentle.key, old, now + 4999)).toBe(true);
    expect(keyAccepts(gentle.key, old, now + 5000)).toBe(false);
    expect(keyAccepts(revokeKey(gentle.key, now), old, now)).toBe(false);
  });

  test.each(["", "tsn_", "tsn_key_1_2", "Bearer x", `tsn_key_${"0".repeat(32)}_${"g".repeat(64)}`])(
    "%j is no key text",
    (text) => {
      expect(parseKey(text)).toBeUndefined();
    },
  );
});
