import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  type InfiniteData,
  type QueryClient,
} from "@tanstack/react-query";
import { answered, api, ApiError, type Rule, type Schemas } from "./client.ts";

export type RuleInput = Schemas["RuleReplacement"];
export type Simulation = Schemas["Simulation"];
export type RuleImport = Schemas["RuleImport"];
export type RuleImportResult = Schemas["RuleImportResult"];
export type RuleTestResult = Schemas["RuleTestResult"];
export type RuleException = Schemas["RuleException"];

export interface RuleFilter {
  readonly search?: string | undefined;
  readonly source?: string | undefined;
  readonly severity?: Rule["severity"] | undefined;
  readonly enabled?: boolean | undefined;
}

interface RulePage {
  readonly rules: readonly Rule[];
  readonly total: number;
  readonly next: string | null;
}

const PAGE_SIZE = 100;
const RULES = "rules";

/** Rules by name. */
export const rulesQuery = (filter: RuleFilter) =>
  infiniteQueryOptions({
    queryKey: [RULES, "list", filter],
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam, signal }): Promise<RulePage> => {
      const query = { ...filter, source: filter.source as Schemas["RuleSource"], limit: PAGE_SIZE, after: pageParam };
      const { data, pagination } = await answered(api.GET("/v1/rules", { params: { query: given(query) }, signal }));
      return { rules: data, total: pagination.total, next: pagination.next_cursor ?? null };
    },
    getNextPageParam: ({ next }) => next ?? undefined,
  });

/** A parameter that is `undefined` is not sent; its type says so. */
function given<Query extends object>(query: Query): { [Name in keyof Query]: Exclude<Query[Name], undefined> } {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as never;
}

export interface ReadRule {
  readonly rule: Rule;
  /** For a change that must not overwrite somebody else's. */
  readonly etag: string | null;
  /** Channels that are not configured. */
  readonly warnings: readonly string[];
}

type RuleAnswer = Promise<{
  data?: { data: Rule; meta: { warnings?: readonly { message: string }[] } };
  error?: unknown;
  response: Response;
}>;

async function readRule(answer: RuleAnswer): Promise<ReadRule> {
  const { data, error, response } = await answer;
  if (data === undefined) throw new ApiError(response.status, error, response.headers.get("X-Request-Id"));
  const warnings = (data.meta.warnings ?? []).map(({ message }) => message);
  return { rule: data.data, etag: response.headers.get("ETag"), warnings };
}

export const ruleQuery = (id: string) =>
  queryOptions({
    queryKey: [RULES, "one", id],
    queryFn: ({ signal }) => readRule(api.GET("/v1/rules/{id}", { params: { path: { id } }, signal })),
  });

/** The rule with this name, which is how addresses and alerts name it. */
export const ruleByNameQuery = (name: string) =>
  queryOptions({
    queryKey: [RULES, "by-name", name],
    queryFn: async ({ signal }): Promise<Rule | null> => {
      const query = { search: `"${name.replaceAll('"', "")}"`, limit: PAGE_SIZE };
      const { data } = await answered(api.GET("/v1/rules", { params: { query }, signal }));
      return data.find((rule) => rule.name === name) ?? null;
    },
  });

export const createRule = (body: RuleInput) => readRule(api.POST("/v1/rules", { body }));

export function replaceRule(id: string, input: RuleInput, etag: string | null): Promise<ReadRule> {
  const header = etag === null ? {} : { "If-Match": etag };
  // Without a list the service would keep the tests.
  const body = { ...input, tests: input.tests ?? [] };
  return readRule(api.PUT("/v1/rules/{id}", { params: { path: { id }, header }, body }));
}

export const switchRule = (id: string, enabled: boolean) =>
  readRule(api.PATCH("/v1/rules/{id}", { params: { path: { id } }, body: { enabled } }));

export async function deleteRule(id: string): Promise<void> {
  await answered(api.DELETE("/v1/rules/{id}", { params: { path: { id } } }));
}

export async function removeException(ruleId: string, exceptionId: string): Promise<void> {
  const path = { id: ruleId, exception_id: exceptionId };
  await answered(api.DELETE("/v1/rules/{id}/exceptions/{exception_id}", { params: { path } }));
}

export async function addException(ruleId: string, body: Schemas["NewException"]): Promise<void> {
  await answered(api.POST("/v1/rules/{id}/exceptions", { params: { path: { id: ruleId } }, body }));
}

const SIMULATED_RANGE = { from: "now-7d", to: "now" };

/** What the rule would have found in the last seven days. */
export async function simulateRule(rule: RuleInput, signal?: AbortSignal): Promise<Simulation> {
  const body = { rule, time_range: SIMULATED_RANGE };
  return (await answered(api.POST("/v1/rules/simulate", { body, ...(signal && { signal }) }))).data;
}

/** Runs the tests of a stored or built-in rule. */
export async function testRule(id: string): Promise<RuleTestResult> {
  return (await answered(api.POST("/v1/rules/{id}/test", { params: { path: { id } } }))).data;
}

/** Runs the tests of a rule that is not saved. */
export async function testDraft(rule: RuleInput): Promise<RuleTestResult> {
  return (await answered(api.POST("/v1/rules/test", { body: { rule } }))).data;
}

export async function importRules(body: RuleImport): Promise<RuleImportResult> {
  return (await answered(api.POST("/v1/rules/import", { body }))).data;
}

/** Puts a changed rule where it is shown: no row moves. */
export function noteRule(client: QueryClient, read: ReadRule): void {
  client.setQueryData(ruleQuery(read.rule.id).queryKey, read);
  client.setQueriesData<InfiniteData<RulePage>>({ queryKey: [RULES, "list"] }, (shown) =>
    shown === undefined
      ? shown
      : {
          ...shown,
          pages: shown.pages.map((page) => ({
            ...page,
            rules: page.rules.map((rule) => (rule.id === read.rule.id ? read.rule : rule)),
          })),
        },
  );
}

export const refreshRules = (client: QueryClient) => client.invalidateQueries({ queryKey: [RULES] });

/** The names of fields that events have, for suggestions. */
export const eventFieldsQuery = queryOptions({
  queryKey: ["event-fields"],
  staleTime: 600_000,
  queryFn: async ({ signal }) =>
    (await answered(api.GET("/v1/events/fields", { signal }))).data.fields.map(({ name }) => name),
});
