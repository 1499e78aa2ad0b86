import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { Rulebook } from "../detection/rules/rulebook.ts";
import { severitySchema } from "../model/event-schema.ts";
import type { Position } from "../model/page.ts";
import { ANY_SOURCE, type Channel, type Rule } from "../model/rule.ts";
import { exceptionInputSchema, ruleInputSchema, ruleReplacementSchema } from "../model/rule-schema.ts";
import type { RuleTest } from "../model/rule-test.ts";
import { exceptionFaults, ruleExceptionFaults } from "../model/rule-faults.ts";
import { exceptionSchema, exceptionView, outcomesSince, ruleSchema, ruleView } from "../model/rule-view.ts";
import type { AlertStore } from "../store/ports/alert-store.ts";
import { searchableTexts, textMatcher, type Searchable } from "../store/search/text-matcher.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data, withWarnings, type ResponseWarning } from "./response.ts";
import { booleanParameter } from "./query-parameters.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging, searchParameter } from "./paging.ts";
import { invalid } from "./problems.ts";
import { RULE_INPUT_EXAMPLE } from "./rule-example.ts";
import type { TestsOf } from "./rule-test-endpoints.ts";
import { sourceSchema } from "./sources.ts";

const TAG_CHARACTERS_MAX = 100;
const SEARCHABLES_CHUNK_MAX = 250;

const RULE_EXAMPLE = {
  id: "rule_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  ...RULE_INPUT_EXAMPLE,
  enabled: true,
  source: ANY_SOURCE,
  references: [],
  sequence: null,
  sequence_order: "in_order",
  sequence_min: null,
  group_by: null,
  absence: null,
  parts: [],
  dedup: { period: "1h", by: null },
  exceptions: [],
  origin: null,
  builtin: false,
  created_at: "2026-11-15T08:30:00.000Z",
  updated_at: "2026-11-15T08:30:00.000Z",
  stats: { matches_24h: 0, matches_7d: 0, last_match: null, alerts_7d: 0, false_positive_share: null },
};
const { tests: _, ...LISTED_EXAMPLE } = RULE_EXAMPLE;
const EXCEPTION_INPUT_EXAMPLE = {
  conditions: [{ field: "raw.src_ip", equals: "192.0.2.17" }],
  reason: "internal vulnerability scanner",
  expires_at: "2027-01-01T00:00:00Z",
};
const EXCEPTION_EXAMPLE = {
  id: "exc_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  ...EXCEPTION_INPUT_EXAMPLE,
  author: "ci",
  created_at: "2026-11-15T08:30:00.000Z",
};

const NOT_A_RULE_ID = "is not the id of a rule";
const idParams = z.object({ id: z.string() });
const revisionHeader = z.object({
  "If-Match": z
    .string()
    .optional()
    .describe("the last known `ETag` of the rule; if the rule has changed since, the request is refused with 409"),
});

export interface RuleEndpointOptions {
  readonly rulebook: Rulebook;
  readonly alerts: Pick<AlertStore, "outcomes">;
  /** The configured channels. */
  readonly channels: readonly Channel[];
  readonly sources: readonly string[];
  /** Resolves once all matches counted by detection are in the stats. */
  readonly countMatches: () => Promise<void>;
  readonly testsOf: TestsOf;
  readonly now: () => number;
}

export function ruleEndpoints(options: RuleEndpointOptions): Endpoint[] {
  const { rulebook, alerts, channels, sources, countMatches, testsOf, now } = options;
  const views = async (rules: readonly Rule[], tests?: readonly RuleTest[]) => {
    await countMatches();
    const names = rules.map(({ name }) => name);
    const [stats, outcomes] = await Promise.all([rulebook.stats(rules), alerts.outcomes(names, outcomesSince(now()))]);
    return rules.map((rule, i) => ruleView(rule, stats[i]!, outcomes[i]!, tests));
  };
  const findRules = ruleSearch();
  const respond = async (rule: Rule, status = 200, headers: Readonly<Record<string, string>> = {}) => {
    const [view] = await views([rule], await testsOf(rule));
    return withWarnings(data(view, status, { ETag: etagOf(rule), ...headers }), channelWarnings(rule, channels));
  };
  return [
    endpoint({
      method: "GET",
      path: "/v1/rules",
      operationId: "listRules",
      tag: "Rules",
      summary: "List rules by name",
      scopes: ["rules:read"],
      query: refuseMixedPaging(
        z.strictObject({
          ...pagingParameters("rule"),
          enabled: booleanParameter(),
          source: sourceSchema([ANY_SOURCE, ...sources]).optional(),
          severity: severitySchema.optional(),
          tag: z.string().min(1).max(TAG_CHARACTERS_MAX).optional(),
          search: searchParameter(
            'words that must all occur in the name or the description; each matches as a prefix, a "phrase" as a whole',
          ),
        }),
      ),
      cursorFault: async (id) => (rulebook.find(id) ? undefined : NOT_A_RULE_ID),
      responses: {
        200: {
          description: "one page of rules",
          data: z.array(ruleSchema),
          paginated: true,
          example: [LISTED_EXAMPLE],
        },
      },
      handle: async ({ query: { page, per_page, after, limit, search, ...filter } }) => {
        const position = positionOf({ page, per_page, after, limit });
        const listed = rulebook.list(filter);
        const all = search === undefined ? listed : await findRules(listed, search);
        const { shown, nextCursor } = slicePage(all, position, rulebook);
        const items = (await views(shown)).map((view) => JSON.stringify(view));
        return listPage(position, { total: all.length, items, nextCursor });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/rules/:id",
      operationId: "getRule",
      tag: "Rules",
      summary: "Get a rule",
      scopes: ["rules:read"],
      params: idParams,
      responses: { 200: { description: "the rule", data: ruleSchema, example: RULE_EXAMPLE } },
      problems: ["not_found"],
      headers: { 200: ["ETag"] },
      handle: ({ params }) => respond(rulebook.get(params.id)),
    }),
    endpoint({
      method: "POST",
      path: "/v1/rules",
      operationId: "createRule",
      tag: "Rules",
      summary: "Create a rule",
      description:
        "The rule applies to events that arrive from now on. A channel that is not configured is named in `meta.warnings`, here and " +
        "whenever the rule is read or changed.",
      scopes: ["rules:write"],
      body: ruleInputSchema(sources),
      example: RULE_INPUT_EXAMPLE,
      responses: { 201: { description: "the rule", data: ruleSchema, example: RULE_EXAMPLE } },
      problems: ["conflict"],
      headers: { 201: ["Location", "ETag"] },
      extraFaults: (input) => ruleExceptionFaults(input, now()),
      handle: async ({ body, key }) => {
        const rule = await rulebook.create(body, key.name);
        return respond(rule, 201, { Location: `/v1/rules/${rule.id}` });
      },
    }),
    endpoint({
      method: "PUT",
      path: "/v1/rules/:id",
      operationId: "replaceRule",
      tag: "Rules",
      summary: "Replace a rule",
      description:
        "Omitted fields are reset to their defaults. The name cannot change. The rule starts afresh: it applies to events that " +
        "arrive from now on, and existing alerts do not change. The rule may be sent as it was read: read-only fields such as `stats` " +
        "are ignored. Exceptions sent with their `id` are kept unchanged; omitted ones are removed. Tests stay if `tests` is omitted; an " +
        "empty list removes them.",
      scopes: ["rules:write"],
      params: idParams,
      requestHeaders: revisionHeader,
      body: ruleReplacementSchema(sources),
      example: { ...RULE_INPUT_EXAMPLE, enabled: true },
      responses: { 200: { description: "the rule", data: ruleSchema, example: RULE_EXAMPLE } },
      problems: ["not_found", "builtin_rule", "conflict"],
      refuseEarly: ({ id }) => rulebook.refuseBuiltin(id, "replaced"),
      headers: { 200: ["ETag"] },
      extraFaults: (input, params) => {
        const rule = rulebook.find(params.id);
        if (!rule) return [];
        const sent = (typeof input === "object" ? input : null) as { readonly [key: string]: unknown } | null;
        const changed = (["id", "name"] as const)
          .filter((field) => sent?.[field] !== undefined && sent[field] !== rule[field])
          .map((field) => ({ field, message: `cannot be changed; it is ${rule[field]}` }));
        return [...changed, ...ruleExceptionFaults(input, now(), rule.exceptions)];
      },
      handle: async ({ params, body, key, request }) =>
        respond(await rulebook.replace(params.id, body, key.name, revisionOf(request.headers["if-match"]))),
    }),
    endpoint({
      method: "PATCH",
      path: "/v1/rules/:id",
      operationId: "patchRule",
      tag: "Rules",
      summary: "Enable or disable a rule, or change its severity",
      scopes: ["rules:write"],
      params: idParams,
      requestHeaders: revisionHeader,
      body: z
        .strictObject({ enabled: z.boolean().optional(), severity: severitySchema.optional() })
        .refine(({ enabled, severity }) => enabled !== undefined || severity !== undefined, {
          message: "is empty; send enabled, severity or both",
        })
        .meta({ id: "RulePatch", minProperties: 1 }),
      example: { enabled: false },
      responses: { 200: { description: "the rule", data: ruleSchema, example: { ...RULE_EXAMPLE, enabled: false } } },
      problems: ["not_found", "builtin_rule", "conflict"],
      headers: { 200: ["ETag"] },
      handle: async ({ params, body, request }) =>
        respond(await rulebook.patch(params.id, body, revisionOf(request.headers["if-match"]))),
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/rules/:id",
      operationId: "deleteRule",
      tag: "Rules",
      summary: "Delete a rule",
      description: "Alerts of the rule are kept. A built-in rule can only be disabled.",
      scopes: ["rules:write"],
      params: idParams,
      requestHeaders: revisionHeader,
      responses: {
        200: {
          description: "the rule is deleted",
          data: z.object({ id: z.string(), deleted: z.literal(true) }),
          example: { id: RULE_EXAMPLE.id, deleted: true },
        },
      },
      problems: ["not_found", "builtin_rule", "conflict"],
      refuseEarly: ({ id }) => rulebook.refuseBuiltin(id, "deleted"),
      handle: async ({ params, request }) => {
        await rulebook.remove(params.id, revisionOf(request.headers["if-match"]));
        return data({ id: params.id, deleted: true });
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/rules/:id/exceptions",
      operationId: "addRuleException",
      tag: "Rules",
      summary: "Add an exception to a rule",
      description:
        "Events that match an exception do not match the rule. Built-in rules accept exceptions too. Resolving an alert as a false positive can also add one.",
      scopes: ["rules:write"],
      params: idParams,
      body: exceptionInputSchema,
      example: EXCEPTION_INPUT_EXAMPLE,
      responses: { 201: { description: "the exception", data: exceptionSchema, example: EXCEPTION_EXAMPLE } },
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const faults = exceptionFaults(body, { sources, now: now() });
        if (faults.length > 0) throw invalid(faults);
        return data(exceptionView(await rulebook.addException(params.id, body, key.name)), 201);
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/rules/:id/exceptions/:exception_id",
      operationId: "removeRuleException",
      tag: "Rules",
      summary: "Remove an exception from a rule",
      scopes: ["rules:write"],
      params: z.object({ id: z.string(), exception_id: z.string() }),
      responses: {
        200: {
          description: "the exception is removed",
          data: z.object({ id: z.string(), deleted: z.literal(true) }),
          example: { id: EXCEPTION_EXAMPLE.id, deleted: true },
        },
      },
      problems: ["not_found"],
      handle: async ({ params }) => {
        await rulebook.removeException(params.id, params.exception_id);
        return data({ id: params.exception_id, deleted: true });
      },
    }),
  ];
}

/** A rule may name a channel before it is configured; until then its alerts are not sent there. */
function channelWarnings({ actions }: Rule, channels: readonly Channel[]): ResponseWarning[] {
  return actions.flatMap(({ alert }, i) =>
    alert.channels.flatMap((channel, j) =>
      channels.includes(channel)
        ? []
        : {
            field: `actions[${i}].alert.channels[${j}]`,
            message: `the channel ${channel} is not configured, so alerts are not sent to it`,
            suggestion: null,
          },
    ),
  );
}

/** Finds rules by words. The searchable text of a rule is cached; building many yields to other requests in between. */
function ruleSearch() {
  const known = new WeakMap<Rule, Searchable>();
  return async (rules: readonly Rule[], words: string): Promise<Rule[]> => {
    const matches = textMatcher(words);
    const found: Rule[] = [];
    let built = 0;
    for (const rule of rules) {
      let searchable = known.get(rule);
      if (!searchable) {
        if (++built % SEARCHABLES_CHUNK_MAX === 0) await setImmediate();
        known.set(rule, (searchable = searchableTexts([rule.name, rule.description])));
      }
      if (matches(searchable)) found.push(rule);
    }
    return found;
  };
}

/** The requested part of the list. A cursor continues after the name of its rule, even if the filter excludes that rule. */
function slicePage(
  all: readonly Rule[],
  position: Position,
  rulebook: Rulebook,
): { shown: Rule[]; nextCursor: string | null } {
  if (position.mode === "page") {
    const first = (position.page - 1) * position.size;
    return { shown: all.slice(first, first + position.size), nextCursor: null };
  }
  const after = position.after === undefined ? undefined : rulebook.find(position.after);
  if (position.after !== undefined && !after) {
    throw invalid([{ field: "after", message: NOT_A_RULE_ID }]);
  }
  const rest = after ? all.filter(({ name }) => name > after.name) : all;
  const shown = rest.slice(0, position.size);
  return { shown, nextCursor: rest.length > shown.length ? shown.at(-1)!.id : null };
}

function etagOf({ revision }: Rule): string {
  return `"${revision}"`;
}

function revisionOf(header: string | undefined): number | undefined {
  if (header === undefined || header.trim() === "*") return undefined;
  const match = /^\s*(?:W\/)?"(\d{1,15})"\s*$/.exec(header);
  if (!match) throw invalid([{ field: "If-Match", message: 'must be an ETag of the rule, such as "3"' }]);
  return Number(match[1]);
}
