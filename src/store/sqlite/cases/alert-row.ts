import type { AlertSummary } from "../../../model/alert.ts";
import type { AlertCells } from "../../alert-index/alert-columns.ts";
import { alertFields } from "../../alert-index/alert-cells.ts";
import type { Statements } from "./prepared-statements.ts";

// The narrow row of an alert, which holds the fields that lists use.

export const CELLS = `seq - 1 AS slot, status, severity, rule_name AS ruleName, source, assignee, resolution, created_at AS createdAt,
  last_event_at AS lastEventAt, event_count AS eventCount, first_acknowledged_at AS firstAcknowledgedAt, resolved_at AS resolvedAt,
  first_event_at AS firstEventAt, group_field AS groupField, group_value AS groupValue, tags, entities, threat_score AS threatScore`;

/** A row of the narrow table: cells with lists as JSON. */
export type CellRow = Omit<AlertCells, "tags" | "entities"> & {
  readonly tags: string;
  readonly entities: string | null;
};

interface Written {
  readonly seq: number;
  readonly change: number;
  readonly textHash: string;
}

export function writeRow(sql: Statements, alert: AlertSummary, { seq, change, textHash }: Written): void {
  const { group, tags, threatScore } = alertFields(alert);
  sql.run(
    `INSERT INTO alerts(seq, id, version, change, rule_id, fold_key, rule_name, source, severity, status, assignee, resolution,
         created_at, first_event_at, last_event_at, event_count, first_acknowledged_at, resolved_at, text_hash, group_field,
         group_value, tags, entities, threat_score, definition_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT(seq) DO UPDATE SET version = excluded.version, change = excluded.change, severity = excluded.severity,
         status = excluded.status, assignee = excluded.assignee, resolution = excluded.resolution,
         first_event_at = excluded.first_event_at, last_event_at = excluded.last_event_at, event_count = excluded.event_count,
         first_acknowledged_at = excluded.first_acknowledged_at, resolved_at = excluded.resolved_at, text_hash = excluded.text_hash,
         tags = excluded.tags, entities = excluded.entities, threat_score = excluded.threat_score,
         definition_id = excluded.definition_id`,
    seq,
    alert.id,
    alert.version,
    change,
    alert.rule.id,
    alert.foldKey,
    alert.rule.name,
    alert.source,
    alert.severity,
    alert.status,
    alert.assignee,
    alert.resolution,
    alert.createdAt,
    alert.firstEventAt,
    alert.lastEventAt,
    alert.eventCount,
    alert.firstAcknowledgedAt,
    alert.resolvedAt,
    textHash,
    group?.field ?? null,
    group?.value ?? null,
    JSON.stringify(tags),
    entitiesText(alert),
    threatScore,
    alert.definitionId ?? null,
  );
}

/** Null while the entities are not known. */
export function entitiesText(alert: AlertSummary): string | null {
  const { entities } = alertFields(alert);
  return entities && JSON.stringify(entities);
}

export function* cellsIn(rows: Iterable<CellRow>): Iterable<AlertCells> {
  for (const row of rows) {
    const [tags, entities] = [JSON.parse(row.tags), JSON.parse(row.entities ?? "[]")] as [string[], string[]];
    yield { ...row, tags, entities };
  }
}
