import { setImmediate } from "node:timers/promises";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Alerts, Transition, TransitionOf } from "./alerts.ts";
import type { ChangedWork } from "./work-state.ts";

// A transition of many alerts, in batches: detection and other people change alerts in between, and memory does not grow with
// the number of alerts beyond their ids.

const BATCH_ALERTS = 100;
/** Failures that are listed; more are counted. */
export const BULK_FAILURES_MAX = 500;

export interface BulkFailure {
  readonly id: string;
  /** `unavailable`: the store refused the batch. Later batches were not attempted. */
  readonly kind: "not_found" | "conflict" | "unavailable";
  readonly message: string;
}

export interface BulkResult {
  /** In the order of the request, up to `listedMax`. */
  readonly succeeded: readonly string[];
  readonly succeededCount: number;
  /** All alerts whose status, assignee, resolution or tags changed. */
  readonly changed: readonly ChangedWork[];
  readonly failed: readonly BulkFailure[];
  readonly failedCount: number;
  /** The alerts of the batch that the store refused, and of all later ones. */
  readonly leftCount: number;
}

export interface BulkOptions {
  readonly actor: string;
  /** Only counts what would happen. */
  readonly isDryRun: boolean;
  /** The number of changed alerts to list. */
  readonly listedMax: number;
}

/** Throws StoreUnavailable only if nothing has changed yet. */
export async function transitionInBatches(
  alerts: Pick<Alerts, "transitionMany">,
  ids: readonly string[],
  transition: Transition | TransitionOf,
  { actor, isDryRun, listedMax }: BulkOptions,
): Promise<BulkResult> {
  const succeeded: string[] = [];
  const changed: ChangedWork[] = [];
  const failed: BulkFailure[] = [];
  let succeededCount = 0;
  let failedCount = 0;
  const fail = (failures: readonly BulkFailure[]) => {
    failedCount += failures.length;
    failed.push(...failures.slice(0, BULK_FAILURES_MAX - failed.length));
  };
  let done = 0;
  while (done < ids.length) {
    const batch = ids.slice(done, done + BATCH_ALERTS);
    try {
      const outcome = await alerts.transitionMany(batch, transition, actor, isDryRun);
      succeededCount += outcome.succeeded.length;
      succeeded.push(...outcome.succeeded.slice(0, listedMax - succeeded.length));
      changed.push(...outcome.changed);
      fail(outcome.failed.map(({ id, refusal }) => ({ id, kind: refusal.kind, message: refusal.message })));
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || done === 0) throw error;
      fail(batch.map((id) => ({ id, kind: "unavailable", message: error.message })));
      break;
    }
    done += batch.length;
    await setImmediate();
  }
  return { succeeded, succeededCount, changed, failed, failedCount, leftCount: ids.length - done };
}
