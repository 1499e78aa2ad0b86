import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { Rulebook } from "../detection/rulebook.ts";
import { severitySchema } from "../model/event-schema.ts";
import type { Position } from "../model/page.ts";
import { ANY_SOURCE, type Rule } from "../model/rule.ts";
import { exceptionInputSchema, ruleInputSchema, ruleReplacementSchema } from "../model/rule-schema.ts";
import { exceptionFaults, ruleExceptionFaults } from "../model/rule-faults.ts";
import { exceptionSchema, exceptionView, ruleSchema, ruleView } from "../model/rule-view.ts";
import type { Searchable, Store } from "../store/store.ts";
import { booleanParameter, data, endpoint, type Endpoint } from "./endpoint.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging, searchParameter } from "./paging.ts";
import { invalid } from "./problems.ts";
import { sourceSchema } from "./sources.ts";

const TAG_CHARACTERS_MAX = 100;
const SEARCHABLES_AT_ONCE_MAX = 250;

const RULE_INPUT_EXAMPLE = {
  name: "site.repeated_login_failure",
  description: "Five failed logins from one address within five minutes",
  severity: "high",
  tags: ["attack.t1110"],
  title: "Failed logins from {{raw.src_ip}}",
  conditions: [{ field: "type", equals: "login_failure" }],
  window: "5m",
  threshold: { count: 5, group_by: "raw.src_ip" },
  actions: [{ alert: { channels: [] } }],
};
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
  dedup: { period: "1h", by: null },
  exceptions: [],
  origin: null,
  builtin: false,
  created_at: "2026-11-15T08:30:00.000Z",
  updated_at: "2026-11-15T08:30:00.000Z",
  stats: { matches_24h: 0, matches_7d: 0, last_match: null },
};
const EXCEPTION_INPUT_EXAMPLE = {
  conditions: [{ field: "raw.src_ip", equals: "192.0.2.17" }],
  reason: "the vulnerability scanner of the house",
  expires_at: "2027-01-01T00:00:00Z",
};
const EXCEPTION_EXAMPLE = {
  id: "exc_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  ...EXCEPTION_INPUT_EXAMPLE,
  author: "ci",
  created_at: "2026-11-15T08:30:00.000Z",
};

const NO_RULE = "is not the id of a rule";
const idParams = z.object({ id: z.string() });
const revisionHeader = z.object({
  "If-Match": z
    .string()
    .optional()
    .describe("the `ETag` of the rule as you have seen it: where it has changed since, a 409 and nothing is done"),
});

export interface RuleEndpointOptions {
  readonly rulebook: Rulebook;
  readonly store: Pick<Store, "searchable" | "searchFault" | "searchIn">;
  readonly sources: readonly string[];
  /** What detection has counted is in the figures when this resolves. */
  readonly countMatches: () => Promise<void>;
  readonly now: () => number;
}

export function ruleEndpoints({ rulebook, store, sources, countMatches, now }: RuleEndpointOptions): Endpoint[] {
  const views = async (rules: readonly Rule[]) => {
    await countMatches();
    const stats = await rulebook.stats(rules);
    return rules.map((rule, i) => ruleView(rule, stats[i]!));
  };
  const findRules = ruleSearch(store);
  const answer = async (rule: Rule, status = 200, headers: Readonly<Record<string, string>> = {}) => {
    const [view] = await views([rule]);
    return data(view, status, { ETag: etagOf(rule), ...headers });
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
            (words) => store.searchFault(words),
            'words that must all occur in the name or the description, each from its beginning; a "phrase" as a whole',
          ),
        }),
      ),
      cursorFault: async (id) => (rulebook.find(id) ? undefined : NO_RULE),
      answers: {
        200: { about: "a page of rules", data: z.array(ruleSchema), paginated: true, example: [RULE_EXAMPLE] },
      },
      handle: async ({ query: { page, per_page, after, limit, search, ...filter } }) => {
        const position = positionOf({ page, per_page, after, limit });
        const listed = rulebook.list(filter);
        const all = search === undefined ? listed : await findRules(listed, search);
        const { shown, nextCursor } = cut(all, position, rulebook);
        const items = (await views(shown)).map((view) => JSON.stringify(view));
        return listPage(position, { total: all.length, items, nextCursor });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/rules/:id",
      operationId: "getRule",
      tag: "Rules",
      summary: "One rule",
      scopes: ["rules:read"],
      params: idParams,
      answers: { 200: { about: "the rule", data: ruleSchema, example: RULE_EXAMPLE } },
      problems: ["not_found"],
      headers: { 200: ["ETag"] },
      handle: ({ params }) => answer(rulebook.get(params.id)),
    }),
    endpoint({
      method: "POST",
      path: "/v1/rules",
      operationId: "createRule",
      tag: "Rules",
      summary: "Make a rule",
      about: "It looks at events that come in from now on.",
      scopes: ["rules:write"],
      body: ruleInputSchema(sources),
      example: RULE_INPUT_EXAMPLE,
      answers: { 201: { about: "the rule", data: ruleSchema, example: RULE_EXAMPLE } },
      problems: ["conflict"],
      headers: { 201: ["Location", "ETag"] },
      beyond: (input) => ruleExceptionFaults(input, now()),
      handle: async ({ body, key }) => {
        const rule = await rulebook.create(body, key.name);
        return answer(rule, 201, { Location: `/v1/rules/${rule.id}` });
      },
    }),
    endpoint({
      method: "PUT",
      path: "/v1/rules/:id",
      operationId: "replaceRule",
      tag: "Rules",
      summary: "Replace a rule",
      about:
        "What is left out goes back to its default. The name stays. The rule begins anew: it looks at events that " +
        "come in from now on, and its alerts stay as they are. It may be sent as it was read, with `stats` and the like: only " +
        "what can be changed is. Exceptions that are sent with their `id` stay what they are; those that are left out are gone.",
      scopes: ["rules:write"],
      params: idParams,
      requestHeaders: revisionHeader,
      body: ruleReplacementSchema(sources),
      example: { ...RULE_INPUT_EXAMPLE, enabled: true },
      answers: { 200: { about: "the rule", data: ruleSchema, example: RULE_EXAMPLE } },
      problems: ["not_found", "builtin_rule", "conflict"],
      refuse: ({ id }) => rulebook.refuseBuiltin(id, "replaced"),
      headers: { 200: ["ETag"] },
      beyond: (input, params) => {
        const rule = rulebook.find(params.id);
        if (!rule) return [];
        const sent = (typeof input === "object" ? input : null) as { readonly [key: string]: unknown } | null;
        const changed = (["id", "name"] as const)
          .filter((field) => sent?.[field] !== undefined && sent[field] !== rule[field])
          .map((field) => ({ field, message: `cannot change: it is ${rule[field]}` }));
        return [...changed, ...ruleExceptionFaults(input, now(), rule.exceptions)];
      },
      handle: async ({ params, body, key, request }) =>
        answer(await rulebook.replace(params.id, body, key.name, revisionOf(request.headers["if-match"]))),
    }),
    endpoint({
      method: "PATCH",
      path: "/v1/rules/:id",
      operationId: "patchRule",
      tag: "Rules",
      summary: "Enable or disable a rule, or give it another severity",
      scopes: ["rules:write"],
      params: idParams,
      requestHeaders: revisionHeader,
      body: z
        .strictObject({ enabled: z.boolean().optional(), severity: severitySchema.optional() })
        .refine(({ enabled, severity }) => enabled !== undefined || severity !== undefined, {
          message: "says nothing: give enabled, severity or both",
        })
        .meta({ id: "RulePatch", minProperties: 1 }),
      example: { enabled: false },
      answers: { 200: { about: "the rule", data: ruleSchema, example: { ...RULE_EXAMPLE, enabled: false } } },
      problems: ["not_found", "builtin_rule", "conflict"],
      headers: { 200: ["ETag"] },
      handle: async ({ params, body, request }) =>
        answer(await rulebook.patch(params.id, body, revisionOf(request.headers["if-match"]))),
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/rules/:id",
      operationId: "deleteRule",
      tag: "Rules",
      summary: "Delete a rule",
      about: "Its alerts stay. A built-in rule can only be disabled.",
      scopes: ["rules:write"],
      params: idParams,
      requestHeaders: revisionHeader,
      answers: {
        200: {
          about: "it is gone",
          data: z.object({ id: z.string(), deleted: z.literal(true) }),
          example: { id: RULE_EXAMPLE.id, deleted: true },
        },
      },
      problems: ["not_found", "builtin_rule", "conflict"],
      refuse: ({ id }) => rulebook.refuseBuiltin(id, "deleted"),
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
      summary: "Say which events are no match of a rule, and why",
      about: "Built-in rules take exceptions too. One from a false positive can be made with its resolution.",
      scopes: ["rules:write"],
      params: idParams,
      body: exceptionInputSchema,
      example: EXCEPTION_INPUT_EXAMPLE,
      answers: { 201: { about: "the exception", data: exceptionSchema, example: EXCEPTION_EXAMPLE } },
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
      summary: "Take an exception back",
      scopes: ["rules:write"],
      params: z.object({ id: z.string(), exception_id: z.string() }),
      answers: {
        200: {
          about: "it is gone",
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

/** Finds rules by words. What is searched of a rule is made once; of thousands, others have their turn in between. */
function ruleSearch(store: Pick<Store, "searchable" | "searchIn">) {
  const known = new WeakMap<Rule, Searchable>();
  return async (rules: readonly Rule[], words: string): Promise<Rule[]> => {
    const finds = store.searchIn(words);
    const found: Rule[] = [];
    let made = 0;
    for (const rule of rules) {
      let what = known.get(rule);
      if (!what) {
        if (++made % SEARCHABLES_AT_ONCE_MAX === 0) await setImmediate();
        known.set(rule, (what = store.searchable.texts([rule.name, rule.description])));
      }
      if (finds(what)) found.push(rule);
    }
    return found;
  };
}

/** The part of the list that is asked for. A cursor goes on behind that rule's name, whether the filter has it or not. */
function cut(
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
    throw invalid([{ field: "after", message: NO_RULE }]);
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
