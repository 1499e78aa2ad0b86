import type { AlertFilters } from "./alerts.ts";
import { answered, api, type AlertDetail, type Schemas } from "./client.ts";

// Changes that people make to alerts, one or many at once.

export type Resolution = Schemas["Resolution"];
export const RESOLUTIONS = [
  "true_positive",
  "false_positive",
  "benign",
  "duplicate",
] as const satisfies readonly Resolution[];

export type Change =
  | { readonly action: "acknowledge"; readonly assignee?: string; readonly comment?: string }
  | {
      readonly action: "resolve";
      readonly resolution: Resolution;
      readonly comment?: string;
      readonly actions_taken?: string[];
      readonly exception?: Schemas["ExceptionOfAlert"];
    }
  | { readonly action: "reopen"; readonly comment?: string }
  | { readonly action: "assign"; readonly assignee: string | null }
  | { readonly action: "comment"; readonly comment: string }
  | { readonly action: "tag" | "untag"; readonly tags: string[] };

export interface ChangedAlert {
  /** As it is afterwards; undefined where the service does not say. */
  readonly detail: AlertDetail | undefined;
  /** Takes the change back; undefined where there is nothing to take back. */
  readonly undoId: string | undefined;
}

type DetailAnswer = Promise<{
  data?: { data: AlertDetail; meta: Schemas["Meta"] };
  error?: unknown;
  response: Response;
}>;

async function detailOf(answer: DetailAnswer): Promise<ChangedAlert> {
  const { data, meta } = await answered(answer);
  return { detail: data, undoId: meta.undo_id };
}

export async function changeAlert(id: string, change: Change): Promise<ChangedAlert> {
  const params = { path: { id } };
  switch (change.action) {
    case "acknowledge": {
      const { action: _, ...body } = change;
      return detailOf(api.POST("/v1/alerts/{id}/acknowledge", { params, body }));
    }
    case "resolve": {
      const { action: _, ...body } = change;
      return detailOf(api.POST("/v1/alerts/{id}/resolve", { params, body }));
    }
    case "reopen": {
      const { action: _, ...body } = change;
      return detailOf(api.POST("/v1/alerts/{id}/reopen", { params, body }));
    }
    case "assign":
      return detailOf(api.POST("/v1/alerts/{id}/assign", { params, body: { assignee: change.assignee } }));
    case "comment":
      await answered(api.POST("/v1/alerts/{id}/comments", { params, body: { body: change.comment } }));
      return { detail: undefined, undoId: undefined };
    case "tag":
    case "untag": {
      const body = change.action === "tag" ? { add: change.tags } : { remove: change.tags };
      return detailOf(api.PATCH("/v1/alerts/{id}/tags", { params, body }));
    }
    default:
      return change satisfies never;
  }
}

/** Which alerts a change is for: these, or all that match. */
export type Target = { readonly ids: readonly string[] } | { readonly filters: AlertFilters };

export interface BulkResult {
  readonly succeeded: readonly string[];
  readonly succeededCount: number;
  readonly failed: readonly { readonly id: string; readonly message: string }[];
  readonly failedCount: number;
  /** Matching alerts that are left. */
  readonly remaining: number;
  /** Takes the change back, call by call. */
  readonly undoIds: readonly string[];
}

const IDS_MAX = 500;

const NOTHING_DONE: BulkResult = {
  succeeded: [],
  succeededCount: 0,
  failed: [],
  failedCount: 0,
  remaining: 0,
  undoIds: [],
};

/** Changes alerts in calls of at most five hundred ids, or as many as the service takes at once for a filter. */
export async function changeAlerts(targets: readonly Target[], change: Change): Promise<BulkResult> {
  let result = NOTHING_DONE;
  for (const target of targets) {
    if ("filters" in target) {
      result = merged(result, await bulk({ query: target.filters }, change));
      continue;
    }
    for (let start = 0; start < target.ids.length; start += IDS_MAX) {
      result = merged(result, await bulk({ alert_ids: target.ids.slice(start, start + IDS_MAX) }, change));
    }
  }
  return result;
}

/** Gives the alerts back what the change took from them. Those that somebody has changed since are refused. */
export async function undoChanges(ids: readonly string[]): Promise<BulkResult> {
  let result = NOTHING_DONE;
  // The latest first: an alert may be in several.
  for (const undo_id of ids.toReversed()) {
    const { data } = await answered(api.POST("/v1/alerts/bulk/undo", { body: { undo_id } }));
    result = merged(result, readBulk(data));
  }
  return result;
}

async function bulk(which: object, change: Change): Promise<BulkResult> {
  const { data } = await answered(api.POST("/v1/alerts/bulk", { body: { ...which, ...change } as never }));
  return readBulk(data);
}

function readBulk(data: Schemas["BulkAnswer"]): BulkResult {
  return {
    succeeded: data.succeeded,
    succeededCount: data.succeeded_count,
    failed: data.failed.map(({ id, error }) => ({ id, message: error.message })),
    failedCount: data.failed_count,
    remaining: data.remaining,
    undoIds: data.undo_id === null ? [] : [data.undo_id],
  };
}

const merged = (a: BulkResult, b: BulkResult): BulkResult => ({
  succeeded: [...a.succeeded, ...b.succeeded],
  succeededCount: a.succeededCount + b.succeededCount,
  failed: [...a.failed, ...b.failed],
  failedCount: a.failedCount + b.failedCount,
  remaining: a.remaining + b.remaining,
  undoIds: [...a.undoIds, ...b.undoIds],
});
