import { z } from "zod";
import { canonicalAddress } from "../lib/ip.ts";
import { DAY_MS, formatTime } from "../lib/time.ts";
import { canonicalValue, ENTITY_CHARACTERS_MAX, ENTITY_KINDS, isName, type Entity } from "../model/entity.ts";
import type { JsonObject } from "../model/event.ts";
import { timeseriesPoints } from "../model/flow-query.ts";
import { boundParameter } from "../model/time-bound.ts";
import type { Store } from "../store/ports/store.ts";
import { availablePart, type UnavailablePart } from "./available-part.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { commaListParameter } from "./comma-list.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import {
  alertsPart,
  eventsPart,
  RELATED_EVENTS_MAX,
  relatedPart,
  seenPart,
  summaryView,
  trafficPart,
  type EntityPartQuery,
} from "./entity-parts.ts";
import {
  ENTITY_EXAMPLE,
  entitySchema,
  kindSchema,
  MATCHES_EXAMPLE,
  matchesSchema,
  type EntityPart,
} from "./entity-responses.ts";
import { markIncomplete } from "./incomplete-response.ts";
import { defaultInterval, intervalParameter, refuseTooManyPoints } from "./intervals.ts";
import { refuseReversedRange } from "./paging.ts";
import { integerParameter } from "./query-parameters.ts";
import { data } from "./response.ts";

// Entities: the things that events are about.

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const SEARCH_DAYS = 30;
const PAGE_DAYS = 7;
/** A part that takes longer is left out. */
const PART_MS_MAX = 5000;

export interface EntityEndpointOptions {
  readonly store: Pick<Store, "events" | "alerts" | "flows" | "missing">;
  /** What is known about the fields of an event, from memory. */
  readonly enrich: (raw: JsonObject) => JsonObject | undefined;
  /** The cached host name of an address. */
  readonly hostnameOf: (address: string) => string | null;
  readonly now: () => number;
}

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

const entityParams = z
  .object({
    kind: kindSchema,
    value: z
      .string()
      .refine(isName, `must be at most ${ENTITY_CHARACTERS_MAX} characters, and not a placeholder such as unknown`)
      .describe("URL-encoded; an address in any spelling"),
  })
  .transform(({ kind, value }): Entity => ({ kind, value: canonicalValue(kind, value) }));

const entityQuery = refuseReversedRange(
  z.strictObject({
    from: boundParameter.optional().describe(`default: ${PAGE_DAYS} days before \`to\``),
    to: boundParameter.optional().describe("default: now"),
    interval: intervalParameter,
  }),
);

export function entityEndpoints({ store, enrich, hostnameOf, now }: EntityEndpointOptions): Endpoint[] {
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
      responses: { 200: { description: "the entities", data: matchesSchema, example: MATCHES_EXAMPLE } },
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
    endpoint({
      method: "GET",
      path: "/v1/entities/:kind/:value",
      operationId: "getEntity",
      tag: "Entities",
      summary: "Get everything about an entity",
      description:
        "Events, related entities, alerts and traffic in the range, and when the entity was first and last seen at all. An " +
        "entity that no stored event names has empty parts: an address may have traffic without events. The parts are " +
        `asked for at the same time. One that takes longer than ${PART_MS_MAX / 1000} s, or that the store refuses, is null ` +
        `and listed in \`unavailable\` with the reason. \`related\` is from the newest ${RELATED_EVENTS_MAX.toLocaleString("en")} events. ` +
        "`alerts` also needs the scope `alerts:read`; without it the part is null.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      params: entityParams,
      query: entityQuery,
      responses: { 200: { description: "the entity", data: entitySchema, example: ENTITY_EXAMPLE } },
      handle: async ({ params: entity, query, key, request }) => {
        const { to: toMs = now() } = query;
        const { from: fromMs = toMs - PAGE_DAYS * DAY_MS } = query;
        const { interval: intervalMs = defaultInterval(fromMs, toMs) } = query;
        refuseTooManyPoints(fromMs, toMs, intervalMs);
        const range = { fromMs, toMs, intervalMs };
        const unavailable: UnavailablePart<EntityPart>[] = [];
        const parts = await abortOnDisconnect(request.raw.socket, (signal) => {
          const ask = <Value>(part: EntityPart, work: (query: EntityPartQuery) => Promise<Value>) =>
            availablePart(
              { part, signal, msMax: PART_MS_MAX, onUnavailable: (why) => unavailable.push(why) },
              (partSignal) => work({ store, entity, range, context: { client: key.id, signal: partSignal } }),
            );
          const mayReadAlerts = key.scopes.includes("alerts:read");
          if (!mayReadAlerts)
            unavailable.push({
              part: "alerts",
              reason: "missing_scope",
              message: "the key lacks the scope alerts:read",
            });
          return Promise.all([
            ask("seen", seenPart),
            ask("events", eventsPart),
            ask("related", relatedPart),
            mayReadAlerts ? ask("alerts", alertsPart) : null,
            ask("traffic", (part) => trafficPart(part, hostnameOf)),
          ]);
        });
        const [seen, events, related, alerts, traffic] = parts;
        const response = {
          ...entity,
          from: formatTime(fromMs),
          to: formatTime(toMs),
          interval_secs: intervalMs / 1000,
          timestamps: timeseriesPoints(fromMs, toMs, intervalMs).map(formatTime),
          seen,
          events,
          related,
          alerts,
          traffic,
          hostname: entity.kind === "address" ? hostnameOf(entity.value) : null,
          enrichment: enrichmentOf(entity, enrich),
          unavailable,
        };
        const kinds = traffic === null ? (["events"] as const) : (["events", "flows"] as const);
        return markIncomplete(data(response), store, kinds, range);
      },
    }),
  ];
}

function enrichmentOf({ kind, value }: Entity, enrich: EntityEndpointOptions["enrich"]): JsonObject {
  if (kind === "address") return enrich({ src_ip: value }) ?? {};
  return kind === "device" ? (enrich({ host: value }) ?? {}) : {};
}
