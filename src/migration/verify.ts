import { hash } from "node:crypto";
import { DAY_MS, formatTime } from "../lib/time.ts";
import type { Flow } from "../model/flow-query.ts";
import {
  CASE_KINDS,
  type ArchivedEvent,
  type CaseRecord,
  type DayRows,
  type StoreArchive,
} from "../store/ports/archive.ts";
import { Checksum, type Checked } from "./checksum.ts";
import { rowsOf, takeInventory } from "./inventory.ts";
import { withPlaces } from "./places.ts";

/** A kind, or a day of one, that is not the same in both stores. */
export interface Difference {
  /** `events 2026-11-18`, `alerts`. */
  readonly of: string;
  readonly source: Checked;
  readonly target: Checked;
}

export interface Verification {
  readonly rows: number;
  readonly differences: readonly Difference[];
}

/** A longer token is represented by its digest in some stores. */
const TOKEN_CHARACTERS_MAX = 250;

/** Reads everything back from both stores and compares numbers and checksums, by kind and for events and flows by day. */
export async function verify(
  source: StoreArchive,
  target: StoreArchive,
  placeOf: (place: string) => string,
  onProgress: (done: number, total: number) => void,
): Promise<Verification> {
  const [found, written] = [await takeInventory(source), await takeInventory(target)];
  const total = [found, written].reduce(
    (sum, { events, flows, cases }) => sum + rowsOf(events) + rowsOf(flows) + rowsOf(cases),
    0,
  );
  let done = 0;
  let rows = 0;
  const differences: Difference[] = [];
  const sum = async <Item>(pages: AsyncIterable<readonly Item[]>, textOf: (item: Item) => string) => {
    const checksum = new Checksum();
    for await (const page of pages) {
      for (const item of page) checksum.add(textOf(item));
      done += page.length;
      onProgress(Math.min(done, total), total);
    }
    return checksum.value;
  };
  const compare = (of: string, one: Checked, other: Checked) => {
    rows += other.rows;
    if (one.rows !== other.rows || one.checksum !== other.checksum)
      differences.push({ of, source: one, target: other });
  };
  if (source.data && target.data) {
    const [from, to] = [source.data, target.data];
    for (const day of daysOf(found.events, written.events)) {
      const one = await sum(from.events.readDay(day), eventLine);
      compare(`events ${dayName(day)}`, one, await sum(to.events.readDay(day), eventLine));
    }
    for (const day of daysOf(found.flows, written.flows)) {
      const one = await sum(from.flows.readDay(day), flowLine);
      compare(`flows ${dayName(day)}`, one, await sum(to.flows.readDay(day), flowLine));
    }
  }
  for (const kind of CASE_KINDS) {
    const one = await sum(source.cases.read(kind), (record) => recordLine(withPlaces(kind, record, placeOf)));
    compare(kind, one, await sum(target.cases.read(kind), recordLine));
  }
  return { rows, differences };
}

function daysOf(...lists: readonly (readonly DayRows[])[]): number[] {
  return [...new Set(lists.flat().map(({ day }) => day))].sort((a, b) => a - b);
}

function dayName(day: number): string {
  return formatTime(Math.floor(day / DAY_MS) * DAY_MS).slice(0, 10);
}

function eventLine({ id, text, token }: ArchivedEvent): string {
  const named =
    token !== null && token.length > TOKEN_CHARACTERS_MAX ? `sha256 ${hash("sha256", token, "hex")}` : token;
  return JSON.stringify([id, named, text]);
}

/** Everything that a flow says. Stores give their own ids. */
function flowLine({ id: _id, ...flow }: Flow): string {
  return recordLine({ ...flow, bytes: String(flow.bytes), packets: String(flow.packets) });
}

function recordLine(record: CaseRecord): string {
  return JSON.stringify(
    Object.keys(record)
      .sort()
      .map((name) => [name, record[name]]),
  );
}
