import { z } from "zod";
import { alertDetailSchema, type AlertSummary } from "../model/alert.ts";
import { ALERT_DETAIL_EXAMPLE } from "./alert-examples.ts";
import type { AlertDetails } from "./alert-detail.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { Problem } from "./problems.ts";

/** Analyses an alert and returns it; undefined if it does not exist. */
export type Analyse = (alertId: string, actor: string) => Promise<AlertSummary | undefined>;

const EXAMPLE = {
  ...ALERT_DETAIL_EXAMPLE,
  ai_analysis: {
    summary:
      "Failed logins from 192.0.2.17: 5 events within 4m, rule site.repeated_login_failure. Threat score 48 of 100.",
    threat_score: 48,
    provider: "builtin",
    reasoning: ["+38: severity high (up to 50)", "+10: novelty: the rule's first alert in 30 days"],
    suggested_actions: ["Read the newest events and decide whether somebody can explain them."],
    analysed_at: "2026-11-15T08:30:02.000Z",
  },
};

export function analysisEndpoints(analyse: Analyse, details: AlertDetails): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/analyze",
      operationId: "analyzeAlert",
      tag: "Alerts",
      summary: "Analyse an alert",
      description:
        "Uses the configured model, or the built-in scorer if there is none or it fails; `ai_analysis.provider` names the one " +
        "used. An existing analysis is replaced. Status and severity do not change.",
      scopes: ["alerts:write"],
      params: z.object({ id: z.string() }),
      responses: { 200: { description: "the alert", data: alertDetailSchema, example: EXAMPLE } },
      problems: ["not_found"],
      handle: async ({ params: { id }, key }) => {
        const alert = await analyse(id, key.name);
        if (!alert) throw new Problem("not_found", `alert ${id} does not exist`);
        return details.ofChanged(alert);
      },
    }),
  ];
}
