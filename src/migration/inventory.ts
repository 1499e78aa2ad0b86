import { hash } from "node:crypto";
import { CASE_KINDS, type CaseKind, type DayRows, type StoreArchive } from "../store/ports/archive.ts";

/** What a store holds. */
export interface Inventory {
  readonly events: readonly DayRows[];
  readonly flows: readonly DayRows[];
  readonly cases: readonly { readonly kind: CaseKind; readonly rows: number }[];
}

/** Kinds whose single row exists in an empty store, too. */
const ALWAYS: ReadonlySet<CaseKind> = new Set(["alert_changes"]);

export async function takeInventory({ cases, data }: StoreArchive): Promise<Inventory> {
  const counts: { kind: CaseKind; rows: number }[] = [];
  for (const kind of CASE_KINDS) counts.push({ kind, rows: await cases.count(kind) });
  return {
    events: (await data?.events.days()) ?? [],
    flows: (await data?.flows.days()) ?? [],
    cases: counts,
  };
}

export function rowsOf(days: readonly { readonly rows: number }[]): number {
  return days.reduce((sum, { rows }) => sum + rows, 0);
}

/** The kinds of which there is something, with the number of rows. */
export function contentOf({ events, flows, cases }: Inventory): { readonly kind: string; readonly rows: number }[] {
  const all = [{ kind: "events", rows: rowsOf(events) }, { kind: "flows", rows: rowsOf(flows) }, ...cases];
  return all.filter(({ kind, rows }) => rows > 0 && !ALWAYS.has(kind as CaseKind));
}

/** Differs if the store has changed: a service that ran has moved detection's progress or the uses of keys, too. */
export async function fingerprint({ cases }: StoreArchive, inventory: Inventory): Promise<string> {
  const parts: unknown[] = [inventory];
  for (const kind of ["detection", "alert_changes", "retention_notes"] as const)
    for await (const records of cases.read(kind)) parts.push(records);
  return hash("sha256", JSON.stringify(parts), "hex");
}
