import { describe, expect, test } from "vitest";
import { createKey, openKey, keyView, parseKey, revokeKey, rotateKey } from "./key.ts";

const now = Date.UTC(2026, 10, 15);
const made = () => createKey({ name: "ci", scopes: ["events:read"], plan: "pro", expiresAt: null, now });

describe("a key", () => {
  test("authenticates with its full text, which contains its id", () => {
    const { key, secret } = made();
    const parsed = parseKey(secret)!;
    expect(parsed.id).toBe(key.id);
    expect(openKey(key, parsed.secret, now)).toBeDefined();
    expect(openKey(key, "0".repeat(64), now)).toBeUndefined();
  });

  test("stores nothing of its secret in clear text", () => {
    const { key, secret } = made();
    const kept = JSON.stringify({ ...key, secretHash: Buffer.from(key.secretHash).toString("hex") });
    expect(kept).not.toContain(parseKey(secret)!.secret);
    expect(JSON.stringify(keyView(key, undefined, now))).not.toContain(Buffer.from(key.secretHash).toString("hex"));
  });

  test("is refused from its expiry on, and once revoked", () => {
    const { key, secret } = createKey({ name: "x", scopes: [], plan: "starter", expiresAt: now + 1000, now });
    const text = parseKey(secret)!.secret;
    expect(openKey(key, text, now + 999)).toBeDefined();
    expect(openKey(key, text, now + 1000)).toBeUndefined();
    expect(openKey(revokeKey(key, now), text, now)).toBeUndefined();
  });

  test("refuses its old secret at once after a rotation, or at the end of the grace period", () => {
    const first = made();
    const old = parseKey(first.secret)!.secret;
    const abrupt = rotateKey(first.key, { graceMs: 0, now });
    expect(openKey(abrupt.key, old, now)).toBeUndefined();
    expect(openKey(abrupt.key, parseKey(abrupt.secret)!.secret, now)).toBeDefined();
    const gentle = rotateKey(first.key, { graceMs: 5000, now });
    expect(openKey(gentle.key, old, now + 4999)).toBeDefined();
    expect(openKey(gentle.key, old, now + 5000)).toBeUndefined();
    expect(openKey(revokeKey(gentle.key, now), old, now)).toBeUndefined();
  });

  test.each(["", "tsn_", "tsn_key_1_2", "Bearer x", `tsn_key_${"0".repeat(32)}_${"g".repeat(64)}`])(
    "%j is not the text of a key",
    (text) => {
      expect(parseKey(text)).toBeUndefined();
    },
  );
});
