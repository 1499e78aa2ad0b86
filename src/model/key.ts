import { z } from "zod";
import { idMaker } from "../lib/id.ts";
import { hashesEqual, hashSecret, makeSecret } from "../lib/secret.ts";
import { hasUnseen } from "../lib/text.ts";
import { formatTime } from "../lib/time.ts";
import { SYSTEM } from "./alert.ts";

/** Collectors that accept data over HTTP, each with its own scope. */
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

/** True if a key may be part of a URL, which others may read: it can only send to collectors. */
export function mayStandInPath({ scopes }: Pick<ApiKey, "scopes">): boolean {
  return scopes.length > 0 && scopes.every((scope) => scope.startsWith("collect:"));
}

export const PLANS = ["starter", "pro", "enterprise"] as const;
export type Plan = (typeof PLANS)[number];

/** Scopes from storage. One of a later version is left out. */
export function knownScopes(names: readonly string[]): Scope[] {
  return names.filter((name): name is Scope => (SCOPES as readonly string[]).includes(name));
}

/** A plan from storage. One of a later version counts as the smallest. */
export function knownPlan(name: string): Plan {
  return PLANS.find((plan) => plan === name) ?? "starter";
}

export const scopeSchema = z.enum(SCOPES);
export const planSchema = z.enum(PLANS);

// Names appear on timelines and terminals, where invisible characters would make them look like another name.
const UNTOLD = /[\s\p{Default_Ignorable_Code_Point}]/gu;

export const keyNameSchema = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .superRefine((name, context) => {
    const message = nameFault(name);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  })
  .describe(`no control or format characters; ${SYSTEM} is reserved for the service itself`);

function nameFault(name: string): string | undefined {
  if (hasUnseen(name)) return "must not contain control or format characters";
  const isSystem = name.normalize("NFKC").replaceAll(UNTOLD, "").toLowerCase() === SYSTEM;
  return isSystem ? `must not be ${SYSTEM}, which is reserved for the service itself` : undefined;
}

/** A stored key, with a hash of its secret. */
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
  /** Secrets replaced by rotations, each valid until its grace period ends. */
  readonly previous: readonly PreviousSecret[];
}

export interface PreviousSecret {
  readonly hash: Uint8Array;
  readonly until: number;
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
    previous_until: z
      .string()
      .nullable()
      .describe("end of the last grace period of a rotated secret; null: no old secret is valid"),
  })
  .meta({ id: "Key" });

export type KeyView = z.infer<typeof keySchema>;

/** Longest grace period of a rotated secret. */
export const GRACE_SECONDS_MAX = 30 * 86_400;
/** Rotated secrets of one key that may be valid at once. */
const PREVIOUS_SECRETS_MAX = 5;

/** Limit of usable keys created over HTTP: each has its own rate limit. */
export const KEYS_MAX = 500;
/** Limit of revoked and expired keys that are kept; those that ended first are removed first. */
export const ENDED_KEYS_MAX = 500;

// tsn_key_<32 hex>_<64 hex>: the id makes finding the key one look-up; the secret authenticates it.
const KEY_TEXT = /^tsn_(key_[0-9a-f]{32})_([0-9a-f]{64})$/;

/** Id and secret of a key as a client sends it; undefined if it is malformed. */
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

/** A key to store, and its full text, which is shown once and never stored. */
export interface CreatedKey {
  readonly key: ApiKey;
  readonly secret: string;
}

export function createKey({ name, scopes, plan, expiresAt, now }: NewKey): CreatedKey {
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
    previous: [],
  };
  return { key, secret: keyText(id, secret) };
}

/** Rotated secrets that are still valid, in the order of their ends. */
function livePrevious({ previous }: ApiKey, now: number): PreviousSecret[] {
  return previous.filter(({ until }) => now < until).sort((a, b) => a.until - b.until);
}

/** Why a key cannot be rotated with a grace period: too many earlier grace periods still run, and none is cut short. */
export function rotationFault(key: ApiKey, { graceMs, now }: { graceMs: number; now: number }): string | undefined {
  const live = livePrevious(key, now);
  if (graceMs === 0 || live.length < PREVIOUS_SECRETS_MAX) return undefined;
  return `${live.length} rotated secrets of the key ${key.id} are still valid: rotate it without a grace period, or after ${formatTime(live[0]!.until)}`;
}

/** Gives a key a new secret. Old secrets stay valid until their grace periods end. */
export function rotateKey(key: ApiKey, { graceMs, now }: { graceMs: number; now: number }): CreatedKey {
  const secret = makeSecret();
  const live = livePrevious(key, now);
  const rotated: ApiKey = {
    ...key,
    secretHash: hashSecret(secret),
    previous: graceMs > 0 ? [...live, { hash: key.secretHash, until: now + graceMs }] : live,
  };
  return { key: rotated, secret: keyText(key.id, secret) };
}

export function revokeKey(key: ApiKey, now: number): ApiKey {
  return { ...key, revokedAt: key.revokedAt ?? now, previous: [] };
}

/** Neither revoked nor expired. */
export function isUsable(key: ApiKey, now: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || now < key.expiresAt);
}

/**
 * The key if this secret is valid for it now, otherwise undefined. With a rotated secret, the key
 * expires with the grace period, so that keys created with it cannot outlast it.
 */
export function openKey(key: ApiKey, secret: string, now: number): ApiKey | undefined {
  return openKeyByHash(key, hashSecret(secret), now);
}

/** The same for the SHA-256 of a secret. */
export function openKeyByHash(key: ApiKey, hash: Uint8Array, now: number): ApiKey | undefined {
  const isCurrent = hashesEqual(hash, key.secretHash);
  const previous = livePrevious(key, now).filter((secret) => hashesEqual(hash, secret.hash));
  if (!isUsable(key, now)) return undefined;
  if (isCurrent) return key;
  const until = previous.at(-1)?.until;
  return until === undefined ? undefined : { ...key, expiresAt: Math.min(until, key.expiresAt ?? until) };
}

type Strength = Pick<ApiKey, "scopes" | "plan" | "expiresAt">;

/** The ways in which another key is stronger than this one; empty if it is not. */
export function strongerWays(own: Strength, other: Strength): string[] {
  const ways: string[] = [];
  // events:write includes sending to collectors.
  const covers = (scope: Scope) =>
    own.scopes.includes(scope) || (scope.startsWith("collect:") && own.scopes.includes("events:write"));
  const missing = other.scopes.filter((scope) => !covers(scope));
  if (missing.length > 0) ways.push(`lacks the scope ${missing.join(" and ")}`);
  if (PLANS.indexOf(other.plan) > PLANS.indexOf(own.plan)) ways.push(`has the plan ${own.plan}, not ${other.plan}`);
  if (own.expiresAt !== null && (other.expiresAt === null || other.expiresAt > own.expiresAt)) {
    ways.push(`expires at ${formatTime(own.expiresAt)}, before the other`);
  }
  return ways;
}

/** Ids of ended keys beyond ENDED_KEYS_MAX, the oldest. */
export function endedKeysToRemove(keys: readonly ApiKey[], now: number): string[] {
  const endedAt = ({ revokedAt, expiresAt }: ApiKey) => Math.min(revokedAt ?? Infinity, expiresAt ?? Infinity);
  const ended = keys.filter((key) => !isUsable(key, now)).sort((a, b) => endedAt(a) - endedAt(b));
  return ended.slice(0, Math.max(0, ended.length - ENDED_KEYS_MAX)).map(({ id }) => id);
}

/** A key as the API returns it. */
export function keyView(key: ApiKey, usage: { readonly lastUsedAt: number } | undefined, now: number): KeyView {
  const last = livePrevious(key, now).at(-1);
  return {
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    plan: key.plan,
    created_at: formatTime(key.createdAt),
    last_used_at: usage ? formatTime(usage.lastUsedAt) : null,
    expires_at: key.expiresAt === null ? null : formatTime(key.expiresAt),
    revoked_at: key.revokedAt === null ? null : formatTime(key.revokedAt),
    previous_until: last ? formatTime(last.until) : null,
  };
}

function keyText(id: string, secret: string): string {
  return `tsn_${id}_${secret}`;
}
