import { z } from "zod";
import {
  createKey,
  ENDED_KEYS_MAX,
  endedKeysToRemove,
  GRACE_SECONDS_MAX,
  isUsable,
  keyNameSchema,
  KEYS_MAX,
  keySchema,
  keyView,
  planSchema,
  revokeKey,
  rotateKey,
  rotationFault,
  scopeSchema,
  SCOPES,
  strongerWays,
  type ApiKey,
} from "../model/key.ts";
import { PER_PAGE_DEFAULT } from "../model/page.ts";
import { timeSchema } from "../model/query.ts";
import type { KeyStore } from "../store/store.ts";
import { data, endpoint, list, pageParameter, paginate, perPageParameter, type Endpoint } from "./endpoint.ts";
import type { Limits } from "./limits.ts";
import { Problem } from "./problems.ts";

export interface KeyEndpointOptions {
  readonly keys: KeyStore;
  readonly limits: Limits;
  readonly now: () => number;
}

const KEY_EXAMPLE = {
  id: "key_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  name: "ci",
  scopes: ["events:read", "events:write"],
  plan: "pro",
  created_at: "2026-11-15T08:30:00.000Z",
  last_used_at: null,
  expires_at: null,
  revoked_at: null,
  previous_until: null,
};
const MADE_KEY_EXAMPLE = { ...KEY_EXAMPLE, key: `tsn_${KEY_EXAMPLE.id}_<64 hex digits>` };

const ROTATED_KEY_EXAMPLE = { ...MADE_KEY_EXAMPLE, previous_until: "2026-11-15T09:30:00.000Z" };

const idParams = z.object({ id: z.string() });
const madeKeySchema = keySchema
  .extend({ key: z.string().describe("the full key: shown this once, kept nowhere") })
  .meta({ id: "MadeKey" });

export function keyEndpoints({ keys, limits, now }: KeyEndpointOptions): Endpoint[] {
  const view = (key: ApiKey) => keyView(key, limits.usageOf(key.id), now());
  const change = (id: string, alter: (key: ApiKey) => ApiKey): ApiKey => {
    const changed = keys.change(id, alter);
    if (!changed) throw new Problem("not_found", `there is no key ${id}`);
    return changed;
  };
  return [
    endpoint({
      method: "GET",
      path: "/v1/keys",
      operationId: "listKeys",
      tag: "Keys",
      summary: "List keys, oldest first, revoked ones included",
      scopes: ["keys:manage"],
      query: z.strictObject({ page: pageParameter, per_page: perPageParameter }),
      answers: { 200: { about: "a page of keys", data: z.array(keySchema), paginated: true, example: [KEY_EXAMPLE] } },
      handle: ({ query: { page = 1, per_page = PER_PAGE_DEFAULT } }) => {
        const all = keys.list().sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
        const shown = all.slice((page - 1) * per_page, page * per_page);
        return list(
          shown.map((key) => JSON.stringify(view(key))),
          paginate(all.length, page, per_page),
        );
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/keys",
      operationId: "createKey",
      tag: "Keys",
      summary: "Make a key",
      about:
        "A key gives only what it has: no scope that it lacks, no higher plan, no later end. At most " +
        `${KEYS_MAX} keys work at once: one more is a 409. The command line knows none of these limits.`,
      scopes: ["keys:manage"],
      body: z
        .strictObject({
          name: keyNameSchema,
          scopes: z.array(scopeSchema).min(1).max(SCOPES.length),
          plan: planSchema.default("starter"),
          expires_at: timeSchema
            .refine((at) => at > now(), "must lie ahead")
            .nullable()
            .optional()
            .describe("default: when the key that makes it expires, or never"),
        })
        .meta({ id: "NewKey" }),
      example: { name: "ci", scopes: ["events:read", "events:write"], plan: "pro" },
      answers: { 201: { about: "the key", data: madeKeySchema, example: MADE_KEY_EXAMPLE } },
      problems: ["conflict"],
      handle: ({ body, key: own }) => {
        const at = now();
        const expiresAt = body.expires_at === undefined ? own.expiresAt : body.expires_at;
        const { key, secret } = createKey({ ...body, expiresAt, now: at });
        const ways = strongerWays(own, key);
        if (ways.length > 0)
          throw new Problem("forbidden", `the key ${ways.join(" and ")}, and gives only what it has`);
        const all = keys.list();
        if (all.filter((other) => isUsable(other, at)).length >= KEYS_MAX) {
          throw new Problem("conflict", `there are ${KEYS_MAX} keys that work: revoke one that is not needed any more`);
        }
        keys.put(key);
        limits.forget(keys.remove(endedKeysToRemove(all, at)));
        return data({ ...view(key), key: secret }, 201);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/keys/:id/rotate",
      operationId: "rotateKey",
      tag: "Keys",
      summary: "Give a key a new secret",
      about:
        "The old secret goes on working for the grace period, if one is given. A grace that was given before is kept: " +
        "`previous_until` says until when the last of the old secrets works. Revoking the key ends them all. A key rotates " +
        "itself and keys that are no stronger: in scopes, in plan, in when they expire. An old secret counts as a key that " +
        "expires with its grace.",
      scopes: ["keys:manage"],
      params: idParams,
      body: z
        .strictObject({ grace_seconds: z.int().min(0).max(GRACE_SECONDS_MAX).default(0) })
        .meta({ id: "KeyRotation" }),
      bodyOptional: true,
      example: { grace_seconds: 3600 },
      answers: { 200: { about: "the key with its new secret", data: madeKeySchema, example: ROTATED_KEY_EXAMPLE } },
      problems: ["not_found", "conflict"],
      handle: ({ params, body, key: own }) => {
        const at = now();
        let secret = "";
        const rotated = change(params.id, (key) => {
          if (key.revokedAt !== null) throw new Problem("conflict", `the key ${key.id} is revoked`);
          if (key.expiresAt !== null && key.expiresAt <= at) {
            throw new Problem("conflict", `the key ${key.id} has expired`);
          }
          // The answer holds the whole key: to rotate it is to be given it.
          requireNoStronger(own, key);
          const rotation = { graceMs: body.grace_seconds * 1000, now: at };
          const fault = rotationFault(key, rotation);
          if (fault !== undefined) throw new Problem("conflict", fault);
          const made = rotateKey(key, rotation);
          secret = made.secret;
          return made.key;
        });
        return data({ ...view(rotated), key: secret });
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/keys/:id",
      operationId: "revokeKey",
      tag: "Keys",
      summary: "Revoke a key",
      about:
        "It is refused from the very next request on. A key revokes itself and keys that are no stronger: in scopes, in plan, " +
        `in when they expire. The last ${ENDED_KEYS_MAX} that were revoked or have expired stay in the list.`,
      scopes: ["keys:manage"],
      params: idParams,
      answers: { 200: { about: "it is revoked", data: z.object({ id: z.string(), revoked: z.literal(true) }) } },
      problems: ["not_found"],
      handle: ({ params, key: own }) => {
        const { id } = change(params.id, (key) => {
          if (key.id !== own.id) requireNoStronger(own, key);
          return revokeKey(key, now());
        });
        return data({ id, revoked: true });
      },
    }),
  ];
}

function requireNoStronger(own: ApiKey, other: ApiKey): void {
  const ways = strongerWays(own, other);
  if (ways.length === 0) return;
  throw new Problem("forbidden", `the key ${other.id} is stronger than the one you use, which ${ways.join(" and ")}`);
}
