import { z } from "zod";
import { canonicalAddress } from "../lib/ip.ts";
import { DAY_MS, formatTime } from "../lib/time.ts";
import { ENTITY_CHARACTERS_MAX, ENTITY_KINDS } from "../model/entity.ts";
import type { EntitySummary } from "../model/entity-query.ts";
import { boundParameter } from "../model/time-bound.ts";
import type { Store } from "../store/ports/store.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { commaListParameter } from "./comma-list.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { markIncomplete } from "./incomplete-response.ts";
import { refuseReversedRange } from "./paging.ts";
import { integerParameter } from "./query-parameters.ts";
import { data } from "./response.ts";

// Entities: the things that events are about.

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const SEARCH_DAYS = 30;

export interface EntityEndpointOptions {
  readonly store: Pick<Store, "events" | "missing">;
  readonly now: () => number;
}

const kindSchema = z.enum(ENTITY_KINDS);
const timeSchema = z.iso.datetime();

const searchQuery = refuseReversedRange(
  z.strictObject({
    search: z
      .string()
      .trim()
      .min(1)
      .max(ENTITY_CHARACTERS_MAX)
      .describe("a part of the value, in upper or lower case; a whole address in any spelling"),
    kind: commaListParameter(kindSchema, `\`${ENTITY_KINDS.join("`, `")}\``),
    from: boundParameter.optional().describe(`default: ${SEARCH_DAYS} days before \`to\`; extended to a whole UTC day`),
    to: boundParameter.optional().describe("default: now; extended to a whole UTC day"),
    limit: integerParameter(1, LIMIT_MAX, `maximum number of entities, default ${LIMIT_DEFAULT}`),
  }),
);

const summarySchema = z
  .object({
    kind: kindSchema,
    value: z.string(),
    first_seen: timeSchema.describe("of the range"),
    last_seen: timeSchema.describe("of the range"),
    events: z.int().describe("events of the range that name it"),
  })
  .meta({ id: "EntitySummary" });

const searchSchema = z
  .object({
    entities: z.array(summarySchema),
    total: z.int().describe("all matches in the range that was read"),
    from: timeSchema.describe("start of the range that was read"),
    to: timeSchema.describe("end of the range that was read"),
    complete: z
      .boolean()
      .describe("false: `from` is later than requested, or events of an earlier version are still being counted"),
  })
  .meta({ id: "EntityMatches" });

const SEARCH_EXAMPLE = {
  entities: [
    {
      kind: "user",
      value: "ada.morin",
      first_seen: "2026-10-20T06:58:12.000Z",
      last_seen: "2026-11-15T08:30:00.000Z",
      events: 412,
    },
  ],
  total: 1,
  from: "2026-10-16T00:00:00.000Z",
  to: "2026-11-16T00:00:00.000Z",
  complete: true,
};

export function entityEndpoints({ store, now }: EntityEndpointOptions): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/entities",
      operationId: "searchEntities",
      tag: "Entities",
      summary: "Find entities by a part of their value",
      description:
        "Entities are the addresses, people, doors, cameras, devices and numbers that events name. Equal values come first, " +
        "then those that begin with the text; within each, the last seen come first. Entities are counted by UTC day. " +
        "If the newest days already have many matches, older days are left out: `complete` is then false, and `from` is the " +
        "start of the days that were read. A longer text covers the whole range.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: searchQuery,
      responses: { 200: { description: "the entities", data: searchSchema, example: SEARCH_EXAMPLE } },
      handle: async ({ query, key, request }) => {
        const { search, kind, limit = LIMIT_DEFAULT, to: toMs = now() } = query;
        const { from: fromMs = toMs - SEARCH_DAYS * DAY_MS } = query;
        const text = canonicalAddress(search) ?? search;
        const found = await abortOnDisconnect(request.raw.socket, (signal) =>
          store.events.entities({ search: text, kinds: kind, fromMs, toMs, limit }, { client: key.id, signal }),
        );
        const response = {
          entities: found.entities.map(summaryView),
          total: found.total,
          from: formatTime(found.fromMs),
          to: formatTime(found.toMs),
          complete: found.isComplete,
        };
        return markIncomplete(data(response), store, "events", found);
      },
    }),
  ];
}

function summaryView({ kind, value, firstSeenMs, lastSeenMs, events }: EntitySummary) {
  return { kind, value, first_seen: formatTime(firstSeenMs), last_seen: formatTime(lastSeenMs), events };
}
