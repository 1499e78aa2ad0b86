import type { Alert } from "../../data/client.ts";

/** An alert for tests of what is done with one. */
export function alertLike(differences: Partial<Alert> = {}): Alert {
  return {
    id: "alt_1",
    rule_name: "access.door_forced",
    title: "Door Loading dock was forced",
    description: "A door was opened without being unlocked.\n\nSend somebody.",
    severity: "high",
    status: "open",
    source: "platform_access",
    event_count: 1,
    first_event_at: "2026-11-15T08:00:00.000Z",
    last_event_at: "2026-11-15T08:10:00.000Z",
    created_at: "2026-11-15T08:10:01.000Z",
    enrichment: {},
    ai_analysis: null,
    assignee: null,
    resolution: null,
    tags: [],
    group: { field: "raw.door", value: "Loading dock" },
    entities: [{ kind: "door", value: "Loading dock", count: 1 }],
    entities_cut: false,
    ...differences,
  };
}
