import { hash } from "node:crypto";
import type { AlertSummary } from "../../model/alert.ts";
import { entityText } from "../../model/alert-entity.ts";
import type { AlertCells } from "./alert-columns.ts";

/** Fields of an alert that have another form, or a default, in columns. */
export function alertFields(alert: AlertSummary) {
  return {
    group: alert.group,
    tags: alert.tags ?? [],
    entities: alert.entities?.map(entityText) ?? null,
    threatScore: alert.aiAnalysis?.threat_score ?? null,
  };
}

export function cellsOf(alert: AlertSummary, slot: number): AlertCells {
  const { group, tags, entities, threatScore } = alertFields(alert);
  return {
    ...alert,
    slot,
    ruleName: alert.rule.name,
    groupField: group?.field ?? null,
    groupValue: group?.value ?? null,
    tags,
    entities: entities ?? [],
    threatScore,
  };
}

/** Changes if the searched texts of an alert change. */
export function hashOfTexts(texts: readonly string[]): string {
  return hash("sha1", texts.join("\n"), "base64");
}
