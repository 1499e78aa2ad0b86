import { RESOLUTIONS, STATUSES } from "../../model/alert-state.ts";
import { SEVERITIES } from "../../model/event.ts";
import type { AlertWork, HandledAlert, SeverityTotals, WorkQuery } from "../ports/alert-store.ts";
import { NONE, type AlertColumns } from "./alert-columns.ts";
import { Mean, named } from "./column-figures.ts";
import { sliceInOrder } from "./slice-in-order.ts";

/** Where to read a handled alert. */
type HandledSlot = Pick<HandledAlert, "kind" | "at"> & { readonly slot: number };

export type WorkInColumns = Omit<AlertWork, "handled"> & { readonly total: number; readonly slots: HandledSlot[] };

class SeverityTally {
  readonly #counts = SEVERITIES.map(() => 0);
  #total = 0;

  add(severity: number): void {
    this.#counts[severity]!++;
    this.#total++;
  }

  get totals(): SeverityTotals {
    return { total: this.#total, bySeverity: named(SEVERITIES, this.#counts) };
  }
}

/** The work on alerts in a range, from one pass over all of them: an old alert may have been resolved a minute ago. */
export function alertWork(columns: AlertColumns, { fromMs, toMs, limit }: WorkQuery): WorkInColumns {
  const { status, severity, resolution, createdAt, acknowledgeMs, resolveMs, rank } = columns.fields;
  const [acknowledged, resolved, unresolved] = [new SeverityTally(), new SeverityTally(), new SeverityTally()];
  const [firstLook, closed] = [new Mean(), new Mean()];
  const resolutions = RESOLUTIONS.map(() => 0);
  const handled: number[] = [];
  const [open, done] = [STATUSES.indexOf("open"), STATUSES.indexOf("resolved")];
  // A comparison with NaN, for what has not happened, is false.
  const isIn = (ms: number) => ms >= fromMs && ms < toMs;
  let unacknowledged = 0;
  let unresolvedBefore = 0;
  for (const slot of columns.createdIn({})) {
    const created = createdAt[slot]!;
    const worst = severity[slot]!;
    const isAcknowledged = isIn(created + acknowledgeMs[slot]!);
    const isResolved = status[slot] === done && isIn(created + resolveMs[slot]!);
    if (status[slot] !== done) unresolved.add(worst);
    if (status[slot] === open) unacknowledged++;
    if (created < fromMs && !(status[slot] === done && created + resolveMs[slot]! < fromMs)) unresolvedBefore++;
    if (isAcknowledged) {
      acknowledged.add(worst);
      firstLook.add(acknowledgeMs[slot]!);
    }
    if (isResolved) {
      resolved.add(worst);
      closed.add(resolveMs[slot]!);
      if (resolution[slot] !== NONE) resolutions[resolution[slot]!]!++;
      if (Number.isNaN(acknowledgeMs[slot]!)) firstLook.add(resolveMs[slot]!);
    }
    if (isAcknowledged || isResolved) handled.push(slot);
  }
  const lastOf = (slot: number): HandledSlot => {
    const resolvedAt = createdAt[slot]! + resolveMs[slot]!;
    if (status[slot] === done && isIn(resolvedAt)) return { slot, kind: "resolved", at: resolvedAt };
    return { slot, kind: "acknowledged", at: createdAt[slot]! + acknowledgeMs[slot]! };
  };
  const slots = sliceInOrder(Uint32Array.from(handled), 0, limit, (a, b) => {
    const difference = lastOf(b).at - lastOf(a).at;
    return difference < 0 || (difference === 0 && rank[a]! > rank[b]!);
  });
  return {
    acknowledged: acknowledged.totals,
    resolved: resolved.totals,
    resolutions: named(RESOLUTIONS, resolutions),
    firstLookMs: firstLook.value,
    resolveMs: closed.value,
    unresolved: unresolved.totals,
    unacknowledged,
    unresolvedBefore,
    total: handled.length,
    slots: slots.map(lastOf),
  };
}
