import { z } from "zod";
import { SIMULATED_MS_MAX, simulate, toSimulatedRule } from "../detection/simulation/simulation.ts";
import { DAY_MS } from "../lib/time.ts";
import { eventSchema } from "../model/event-schema.ts";
import { boundSchema } from "../model/time-bound.ts";
import { simulatedRuleSchema } from "../model/rule-schema.ts";
import type { Store } from "../store/ports/store.ts";
import { markIncomplete } from "./incomplete-response.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { dataText } from "./response.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { KeySlots } from "./key-slots.ts";

const SIMULATIONS_MAX = 2;
const SIMULATIONS_PER_KEY_MAX = 1;
const RETRY_SECONDS = 5;

export interface SimulateEndpointOptions {
  readonly store: Pick<Store, "events" | "alerts" | "missing">;
  readonly sources: readonly string[];
  readonly now: () => number;
}

const rangeSchema = z
  .strictObject({ from: boundSchema, to: boundSchema })
  .superRefine(({ from, to }, context) => {
    if (from > to) context.addIssue({ code: "custom", path: ["from"], message: "is after to" });
    if (to - from > SIMULATED_MS_MAX) {
      context.addIssue({ code: "custom", path: [], message: `must be at most ${SIMULATED_MS_MAX / DAY_MS} days` });
    }
  })
  .describe("`from` inclusive, `to` exclusive; at most 7 days; also relative, such as `now-7d`");

const simulationSchema = z
  .object({
    matches: z.int().describe("matching events"),
    sample_events: z.array(eventSchema).describe("up to 10 matching events, newest first"),
    estimated_alerts_per_day: z.number().describe("alerts divided by the length of the range in days"),
    false_positive_estimate: z
      .enum(["low", "medium", "high"])
      .describe(
        "a score: points for alerts per day (more than 1: one, more than 10: two), for the share of matches from known-good " +
          "sources, which are private addresses in raw.src_ip and those with an abuse score of 0 (more than 20 %: one, " +
          "more than 60 %: two), and for the share of false positives and benign alerts among the resolved alerts of this " +
          "rule name, if there are at least three (more than 20 %: one, more than 50 %: two, less than 20 %: minus one); up to " +
          "one point is low, up to three medium",
      ),
    alerts: z.int().describe("alerts after deduplication"),
    by_day: z.array(z.object({ day: z.string().describe("UTC"), matches: z.int(), alerts: z.int() })),
  })
  .meta({ id: "Simulation" });

const RULE_EXAMPLE = {
  name: "site.repeated_login_failure",
  description: "Five failed logins from one address within five minutes",
  severity: "high",
  conditions: [{ field: "type", equals: "login_failure" }],
  window: "5m",
  threshold: { count: 5, group_by: "raw.src_ip" },
  actions: [{ alert: { channels: [] } }],
};

export function simulateEndpoints({ store, sources, now }: SimulateEndpointOptions): Endpoint[] {
  const slots = new KeySlots({
    what: "simulations",
    max: SIMULATIONS_MAX,
    perKeyMax: SIMULATIONS_PER_KEY_MAX,
    retrySeconds: RETRY_SECONDS,
  });
  return [
    endpoint({
      method: "POST",
      path: "/v1/rules/simulate",
      operationId: "simulateRule",
      tag: "Rules",
      summary: "Simulate a rule on stored events",
      description:
        "Evaluates the rule with the same matching, time windows and deduplication as live detection. Nothing is stored. The name may " +
        "be that of an existing rule, and exceptions may be sent as they were read. At most " +
        `${SIMULATIONS_MAX} simulations run at once (503 past that), ${SIMULATIONS_PER_KEY_MAX} per key (429 past that).`,
      scopes: ["rules:read", "events:read"],
      body: z
        .strictObject({ rule: simulatedRuleSchema(sources), time_range: rangeSchema })
        .meta({ id: "SimulationRequest" }),
      example: { rule: RULE_EXAMPLE, time_range: { from: "2026-11-08T00:00:00Z", to: "2026-11-15T00:00:00Z" } },
      responses: {
        200: {
          description: "the result of the simulation",
          data: simulationSchema,
          example: {
            matches: 0,
            sample_events: [],
            estimated_alerts_per_day: 0,
            false_positive_estimate: "low",
            alerts: 0,
            by_day: [8, 9, 10, 11, 12, 13, 14].map((day) => ({
              day: `2026-11-${String(day).padStart(2, "0")}`,
              matches: 0,
              alerts: 0,
            })),
          },
        },
      },
      handle: ({ body: { rule, time_range }, key, request }) =>
        slots.hold(key, async () => {
          const range = { fromMs: time_range.from, toMs: time_range.to };
          const found = await abortOnDisconnect(request.raw.socket, (signal) =>
            simulate(toSimulatedRule(rule, now()), range, { store, now, signal }),
          );
          const statistics = JSON.stringify({
            matches: found.matches,
            estimated_alerts_per_day: found.alertsPerDay,
            false_positive_estimate: found.falsePositives,
            alerts: found.alerts,
            by_day: found.byDay,
          });
          const response = dataText(`{"sample_events":[${found.sampleEvents.join(",")}],${statistics.slice(1)}`);
          return markIncomplete(response, store, "events", range);
        }),
    }),
  ];
}
