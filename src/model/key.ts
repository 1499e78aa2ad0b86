import { z } from "zod";

export const SCOPES = [
  "events:read",
  "events:write",
  "alerts:read",
  "alerts:write",
  "rules:read",
  "rules:write",
  "keys:manage",
] as const;
export type Scope = (typeof SCOPES)[number];

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
