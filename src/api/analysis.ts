import { z } from "zod";
import { alertDetailSchema, type AlertSummary } from "../model/alert.ts";
import type { Store } from "../store/store.ts";
import { ALERT_DETAIL_EXAMPLE } from "./alert-examples.ts";
import { movedAlert } from "./alerts.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { Problem } from "./problems.ts";

/** Gives the alert with its analysis; undefined where there is none of that id. */
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

export function analysisEndpoints(analyse: Analyse, store: Pick<Store, "alerts" | "events">): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/analyze",
      operationId: "analyzeAlert",
      tag: "Alerts",
      summary: "Judge an alert now",
      about:
        "By the configured model, or by the built-in scorer where there is none or it fails; `ai_analysis.provider` says which. " +
        "An analysis that is there is replaced. It changes neither status nor severity.",
      scopes: ["alerts:write"],
      params: z.object({ id: z.string() }),
      answers: { 200: { about: "the alert", data: alertDetailSchema, example: EXAMPLE } },
      problems: ["not_found"],
      handle: async ({ params: { id }, key }) => {
        const alert = await analyse(id, key.name);
        if (!alert) throw new Problem("not_found", `there is no alert ${id}`);
        return movedAlert(store, alert);
      },
    }),
  ];
}
