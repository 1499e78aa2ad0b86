import { z } from "zod";
import { idMaker } from "../lib/id.ts";
import { hashesEqual, hashSecret, makeSecret } from "../lib/secret.ts";
import { formatTime } from "../lib/time.ts";

/** Whose bodies and lines are taken by HTTP, each with a scope of its own. */
export const COLLECT_NAMES = ["network", "protect", "access", "talk", "eve", "syslog"] as const;
export type CollectName = (typeof COLLECT_NAMES)[number];

export const SCOPES = [
  "events:read",
  "events:write",
  "alerts:read",
  "alerts:write",
  "rules:read",
  "rules:write",
  "keys:manage",
  "collect:network",
  "collect:protect",
  "collect:access",
  "collect:talk",
  "collect:eve",
  "collect:syslog",
] as const;
export type Scope = (typeof SCOPES)[number];

export function collectScope(name: CollectName): Scope {
  return `collect:${name}`;
}

/** Whether a key may stand in an address, where others may read it: one that can do nothing but send to collectors. */
export function mayStandInPath({ scopes }: Pick<ApiKey, "scopes">): boolean {
  return scopes.length > 0 && scopes.every((scope) => scope.startsWith("collect:"));
}

export const PLANS = ["starter", "pro", "enterprise"] as const;
export type Plan = (typeof PLANS)[number];

export const scopeSchema = z.enum(SCOPES);
export const planSchema = z.enum(PLANS);
export const keyNameSchema = z.string().trim().min(1).max(100);

/** A key as it is kept: of its secret only a hash. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  /** SHA-256 of the secret. */
  readonly secretHash: Uint8Array;
  /** The secret before the last rotation, as long as its grace lasts. */
  readonly previousHash: Uint8Array | null;
  readonly previousUntil: number | null;
}

export const keySchema = z
  .object({
    id: z.string(),
    name: z.string(),
    scopes: z.array(scopeSchema),
    plan: planSchema,
    created_at: z.string(),
    last_used_at: z.string().nullable(),
    expires_at: z.string().nullable(),
    revoked_at: z.string().nullable(),
  })
  .meta({ id: "Key" });

export type KeyView = z.infer<typeof keySchema>;

/** The longest time for which the secret before a rotation may go on working. */
export const GRACE_SECONDS_MAX = 30 * 86_400;

// tsn_key_<32 hex>_<64 hex>: the id names the key, so that finding it is one look-up; the secret proves it.
const KEY_TEXT = /^tsn_(key_[0-9a-f]{32})_([0-9a-f]{64})$/;

/** The two parts of a key as a client sends it; undefined when it cannot be one of ours. */
export function parseKey(text: string): { id: string; secret: string } | undefined {
  const match = KEY_TEXT.exec(text);
  return match ? { id: match[1]!, secret: match[2]! } : undefined;
}

export interface NewKey {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
  readonly expiresAt: number | null;
  readonly now: number;
}

/** A key to keep, and its full text, which is shown once and kept nowhere. */
export interface MadeKey {
  readonly key: ApiKey;
  readonly secret: string;
}

export function createKey({ name, scopes, plan, expiresAt, now }: NewKey): MadeKey {
  const id = idMaker("key_", () => now)();
  const secret = makeSecret();
  const key: ApiKey = {
    id,
    name,
    scopes: SCOPES.filter((scope) => scopes.includes(scope)),
    plan,
    createdAt: now,
    expiresAt,
    revokedAt: null,
    secretHash: hashSecret(secret),
    previousHash: null,
    previousUntil: null,
  };
  return { key, secret: keyText(id, secret) };
}

/** Gives a key a new secret; the old one goes on working for the grace. */
export function rotateKey(key: ApiKey, { graceMs, now }: { graceMs: number; now: number }): MadeKey {
  const secret = makeSecret();
  const rotated: ApiKey = {
    ...key,
    secretHash: hashSecret(secret),
    previousHash: graceMs > 0 ? key.secretHash : null,
    previousUntil: graceMs > 0 ? now + graceMs : null,
  };
  return { key: rotated, secret: keyText(key.id, secret) };
}

export function revokeKey(key: ApiKey, now: number): ApiKey {
  return { ...key, revokedAt: key.revokedAt ?? now, previousHash: null, previousUntil: null };
}

/** Neither revoked nor expired. */
export function isUsable(key: ApiKey, now: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || now < key.expiresAt);
}

/** Whether this secret opens this key now. */
export function keyAccepts(key: ApiKey, secret: string, now: number): boolean {
  const hash = hashSecret(secret);
  const current = hashesEqual(hash, key.secretHash);
  const previous =
    key.previousHash !== null &&
    key.previousUntil !== null &&
    now < key.previousUntil &&
    hashesEqual(hash, key.previousHash);
  return (current || previous) && isUsable(key, now);
}

/** A key as people see it. */
export function keyView(key: ApiKey, usage: { readonly lastUsedAt: number } | undefined): KeyView {
  return {
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    plan: key.plan,
    created_at: formatTime(key.createdAt),
    last_used_at: usage ? formatTime(usage.lastUsedAt) : null,
    expires_at: key.expiresAt === null ? null : formatTime(key.expiresAt),
    revoked_at: key.revokedAt === null ? null : formatTime(key.revokedAt),
  };
}

function keyText(id: string, secret: string): string {
  return `tsn_${id}_${secret}`;
}
