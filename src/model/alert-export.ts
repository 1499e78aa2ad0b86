// The fields of alerts in exports.

/** Alerts that one export has. */
export const EXPORTED_ALERTS_MAX = 100_000;

/** The columns of an export of alerts whose request names none. Scripts rely on the order; new columns go before `enrichment`. */
export const ALERT_EXPORT_COLUMNS: readonly string[] = [
  "id",
  "created_at",
  "severity",
  "status",
  "title",
  "description",
  "source",
  "rule_name",
  "rule.id",
  "rule.tags",
  "group.field",
  "group.value",
  "event_count",
  "first_event_at",
  "last_event_at",
  "assignee",
  "tags",
  "acknowledged_at",
  "resolved_at",
  "resolution",
  "actions_taken",
  "ai_analysis.threat_score",
  "ai_analysis.summary",
  "entities.kind",
  "entities.value",
  "entities_cut",
  "enrichment",
];

export const NUMERIC_ALERT_FIELDS: ReadonlySet<string> = new Set(["event_count", "ai_analysis.threat_score"]);

const TOP_FIELDS = new Set(ALERT_EXPORT_COLUMNS.map((path) => path.split(".", 1)[0]!));
const FIELD_CHARACTERS_MAX = 200;

/** The fault of a field that an export of alerts names; undefined if it is valid. */
export function alertFieldFault(path: string): string | undefined {
  if (path.length > FIELD_CHARACTERS_MAX) return `at most ${FIELD_CHARACTERS_MAX} characters`;
  const segments = path.split(".");
  if (segments.includes("")) return "has an empty segment";
  if (!TOP_FIELDS.has(segments[0]!)) return `not a field of an alert: use ${[...TOP_FIELDS].join(", ")}`;
  return undefined;
}
