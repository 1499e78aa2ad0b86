import { queryOptions } from "@tanstack/react-query";
import { answered, api, type Rule, type Schemas } from "./client.ts";

// How many alerts a rule would have raised. The service runs one simulation per key: the next waits for the one before.

const STALE_MS = 300_000;

let running: Promise<unknown> = Promise.resolve();

function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  const result = running.then(work, work);
  running = result.catch(() => undefined);
  return result;
}

export const ruleQuery = (id: string) =>
  queryOptions({
    queryKey: ["rules", "detail", id],
    staleTime: 60_000,
    queryFn: async ({ signal }): Promise<Rule> =>
      (await answered(api.GET("/v1/rules/{id}", { params: { path: { id } }, signal }))).data,
  });

type Exception = Schemas["NewException"];

/** Alerts of the last week, with another exception if one is given. */
export const weekSimulationQuery = (rule: Rule | undefined, exception: Exception | null) =>
  queryOptions({
    queryKey: ["simulation", rule?.id, rule?.updated_at, exception?.conditions ?? null],
    staleTime: STALE_MS,
    retry: false,
    queryFn: () =>
      inTurn(async () => {
        const { stats: _, ...read } = rule!;
        const exceptions = exception === null ? read.exceptions : [...read.exceptions, exception];
        const time_range = { from: "now-7d", to: "now" };
        const body = { rule: { ...read, exceptions }, time_range } as never;
        return (await answered(api.POST("/v1/rules/simulate", { body }))).data.alerts;
      }),
  });
