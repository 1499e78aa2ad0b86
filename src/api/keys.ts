import { z } from "zod";
import {
  createKey,
  GRACE_SECONDS_MAX,
  keyNameSchema,
  keySchema,
  keyView,
  planSchema,
  revokeKey,
  rotateKey,
  rotationFault,
  scopeSchema,
  SCOPES,
  type ApiKey,
  type Scope,
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
      about: "A key cannot give away scopes that it does not have itself.",
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
            .describe("default: never"),
        })
        .meta({ id: "NewKey" }),
      example: { name: "ci", scopes: ["events:read", "events:write"], plan: "pro" },
      answers: { 201: { about: "the key", data: madeKeySchema, example: MADE_KEY_EXAMPLE } },
      handle: ({ body, key: own }) => {
        const at = now();
        const expiresAt = body.expires_at ?? null;
        requireOwn(own, body.scopes);
        const { key, secret } = createKey({ ...body, expiresAt, now: at });
        keys.put(key);
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
        "`previous_until` says until when the last of the old secrets works. Revoking the key ends them all.",
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
          requireOwn(own, key.scopes);
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
      about: "It is refused from the very next request on. A revoked key stays in the list.",
      scopes: ["keys:manage"],
      params: idParams,
      answers: { 200: { about: "it is revoked", data: z.object({ id: z.string(), revoked: z.literal(true) }) } },
      problems: ["not_found"],
      handle: ({ params }) => {
        const { id } = change(params.id, (key) => revokeKey(key, now()));
        return data({ id, revoked: true });
      },
    }),
  ];
}

function requireOwn(own: ApiKey, scopes: readonly Scope[]): void {
  // To submit any event is more than to send to one collector.
  const covers = (scope: Scope) =>
    own.scopes.includes(scope) || (scope.startsWith("collect:") && own.scopes.includes("events:write"));
  const missing = scopes.filter((scope) => !covers(scope));
  if (missing.length === 0) return;
  throw new Problem("forbidden", `the key lacks the scope ${missing.join(" and ")} and cannot give it away`);
}
