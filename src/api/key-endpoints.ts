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
import { timeSchema } from "../model/time-bound.ts";
import type { KeyStore } from "../store/ports/key-store.ts";
import type { ViewStore } from "../store/ports/view-store.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data, listResponse, paginate } from "./response.ts";
import { pageParameter, perPageParameter } from "./query-parameters.ts";
import type { RateLimits } from "./rate-windows.ts";
import { Problem } from "./problems.ts";
import { SerialQueue } from "../lib/serial-queue.ts";

export interface KeyEndpointOptions {
  readonly keys: KeyStore;
  readonly views: Pick<ViewStore, "removeUnshared">;
  readonly limits: RateLimits;
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
const CREATED_KEY_EXAMPLE = { ...KEY_EXAMPLE, key: `tsn_${KEY_EXAMPLE.id}_<64 hex digits>` };

const ROTATED_KEY_EXAMPLE = { ...CREATED_KEY_EXAMPLE, previous_until: "2026-11-15T09:30:00.000Z" };

const idParams = z.object({ id: z.string() });
const createdKeySchema = keySchema
  .extend({ key: z.string().describe("the full key; shown only in this response and not stored") })
  .meta({ id: "CreatedKey" });

export function keyEndpoints({ keys, views, limits, now }: KeyEndpointOptions): Endpoint[] {
  const view = (key: ApiKey, lastUses: ReadonlyMap<string, number>) => {
    const lastUsedAt = lastUses.get(key.id);
    return keyView(key, lastUsedAt === undefined ? undefined : { lastUsedAt }, now());
  };
  const change = async (id: string, alter: (key: ApiKey) => ApiKey): Promise<ApiKey> => {
    const changed = await keys.change(id, alter);
    if (!changed) throw new Problem("not_found", `key ${id} does not exist`);
    return changed;
  };
  // One after the other, so that two requests cannot both create the last key.
  const creations = new SerialQueue();
  return [
    endpoint({
      method: "GET",
      path: "/v1/keys",
      operationId: "listKeys",
      tag: "Keys",
      summary: "List keys, oldest first, including revoked ones",
      scopes: ["keys:manage"],
      query: z.strictObject({ page: pageParameter, per_page: perPageParameter }),
      responses: {
        200: { description: "one page of keys", data: z.array(keySchema), paginated: true, example: [KEY_EXAMPLE] },
      },
      handle: async ({ query: { page = 1, per_page = PER_PAGE_DEFAULT } }) => {
        const all = (await keys.list()).sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
        const shown = all.slice((page - 1) * per_page, page * per_page);
        const lastUses = await limits.lastUses();
        return listResponse(
          shown.map((key) => JSON.stringify(view(key, lastUses))),
          paginate(all.length, page, per_page),
        );
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/keys",
      operationId: "createKey",
      hasSecret: true,
      tag: "Keys",
      summary: "Create a key",
      description:
        "A key cannot grant more than it has: no scope that it lacks, no higher plan, no later expiry. At most " +
        `${KEYS_MAX} keys can be active; one more is refused with 409. The command line has none of these limits.`,
      scopes: ["keys:manage"],
      body: z
        .strictObject({
          name: keyNameSchema,
          scopes: z.array(scopeSchema).min(1).max(SCOPES.length),
          plan: planSchema.default("starter"),
          expires_at: timeSchema
            .refine((at) => at > now(), "must be in the future")
            .nullable()
            .optional()
            .describe("default: the expiry of the creating key, or never"),
        })
        .meta({ id: "NewKey" }),
      example: { name: "ci", scopes: ["events:read", "events:write"], plan: "pro" },
      responses: { 201: { description: "the key", data: createdKeySchema, example: CREATED_KEY_EXAMPLE } },
      problems: ["conflict"],
      handle: async ({ body, key: own }) => {
        const at = now();
        const expiresAt = body.expires_at === undefined ? own.expiresAt : body.expires_at;
        const { key, secret } = createKey({ ...body, expiresAt, now: at });
        const ways = strongerWays(own, key);
        if (ways.length > 0)
          throw new Problem("forbidden", `the key ${ways.join(" and ")} and cannot grant more than it has`);
        await creations.take(async () => {
          const all = await keys.list();
          if (all.filter((other) => isUsable(other, at)).length >= KEYS_MAX) {
            throw new Problem("conflict", `${KEYS_MAX} keys are active, the maximum; revoke one first`);
          }
          const ended = endedKeysToRemove(all, at);
          if (ended.length > 0) {
            // Nobody could read their own views any more; shared ones still serve the others.
            await views.removeUnshared(ended);
            limits.forget(await keys.remove(ended));
          }
          // Last: after a failure there is no key whose secret nobody knows.
          await keys.put(key);
        });
        return data({ ...view(key, await limits.lastUses()), key: secret }, 201);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/keys/:id/rotate",
      operationId: "rotateKey",
      hasSecret: true,
      tag: "Keys",
      summary: "Rotate the secret of a key",
      description:
        "The old secret remains valid for the grace period, if one is set. Earlier grace periods continue: " +
        "`previous_until` is the time at which the last old secret expires. Revoking the key invalidates all of them. A key can rotate " +
        "itself and keys that are no stronger in scopes, plan and expiry. A request with an old secret counts as a key that " +
        "expires with the grace period.",
      scopes: ["keys:manage"],
      params: idParams,
      body: z
        .strictObject({ grace_seconds: z.int().min(0).max(GRACE_SECONDS_MAX).default(0) })
        .meta({ id: "KeyRotation" }),
      bodyOptional: true,
      example: { grace_seconds: 3600 },
      responses: {
        200: { description: "the key with its new secret", data: createdKeySchema, example: ROTATED_KEY_EXAMPLE },
      },
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key: own }) => {
        const at = now();
        let secret = "";
        const rotated = await change(params.id, (key) => {
          if (key.revokedAt !== null) throw new Problem("conflict", `key ${key.id} is revoked`);
          if (key.expiresAt !== null && key.expiresAt <= at) {
            throw new Problem("conflict", `key ${key.id} has expired`);
          }
          // The response contains the full key, so rotating a key grants it.
          requireNoStronger(own, key);
          const rotation = { graceMs: body.grace_seconds * 1000, now: at };
          const fault = rotationFault(key, rotation);
          if (fault !== undefined) throw new Problem("conflict", fault);
          const replacement = rotateKey(key, rotation);
          secret = replacement.secret;
          return replacement.key;
        });
        return data({ ...view(rotated, await limits.lastUses()), key: secret });
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/keys/:id",
      operationId: "revokeKey",
      tag: "Keys",
      summary: "Revoke a key",
      description:
        "Takes effect with the next request. A key can revoke itself and keys that are no stronger in scopes, plan and expiry. " +
        `The last ${ENDED_KEYS_MAX} revoked or expired keys stay in the list.`,
      scopes: ["keys:manage"],
      params: idParams,
      responses: {
        200: { description: "the key is revoked", data: z.object({ id: z.string(), revoked: z.literal(true) }) },
      },
      problems: ["not_found"],
      handle: async ({ params, key: own }) => {
        const { id } = await change(params.id, (key) => {
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
  throw new Problem(
    "forbidden",
    `key ${other.id} is stronger than the key of this request, which ${ways.join(" and ")}`,
  );
}
