import { timeOfId } from "../lib/id.ts";
import { DAY_MS } from "../lib/time.ts";
import { flowRowsOf } from "../model/flow-rows.ts";
import { CASE_KINDS, type ArrivedEvent, type StoreArchive } from "../store/ports/archive.ts";
import { contentOf, fingerprint, rowsOf, takeInventory, type Inventory } from "./inventory.ts";
import {
  MigrationRefused,
  newState,
  readState,
  saveState,
  type MigrationState,
  type StoreName,
} from "./migration-state.ts";
import { placesOfCases, withPlaces, type CasePlaces } from "./places.ts";
import { verify, type Verification } from "./verify.ts";

// Copies one store into another, so that it can be killed at any moment and goes on from there.

/** Longer than any rule remembers. */
const MEMORY_MS = 8 * DAY_MS;

export const MIGRATION_STEPS = ["events", "flows", "cases", "columns", "verification"] as const;
export type MigrationStep = (typeof MIGRATION_STEPS)[number];

export interface MigrationOptions {
  readonly source: StoreArchive;
  readonly target: StoreArchive;
  readonly from: StoreName;
  readonly to: StoreName;
  readonly platform: string;
  /** A new one, for a migration that begins. */
  readonly id: string;
  readonly now: () => number;
  readonly onProgress: (step: MigrationStep, done: number, total: number) => void;
}

export interface MigrationOutcome extends Verification {
  readonly inventory: Inventory;
  /** How it began: from nothing, where another run had ended, or after all was done. */
  readonly began: "new" | "resumed" | "complete";
}

/** What would be copied. Rejects with MigrationRefused if it would be refused. */
export async function planMigration(options: MigrationOptions): Promise<Pick<MigrationOutcome, "inventory" | "began">> {
  const { inventory, began } = await begin(options);
  return { inventory, began };
}

export async function runMigration(options: MigrationOptions): Promise<MigrationOutcome> {
  const { source, target, now, onProgress } = options;
  const { inventory, began, state: found } = await begin(options);
  let state = found;
  const save = async (changes: Partial<MigrationState>) => {
    state = { ...state, ...changes };
    await saveState(target.notes, state);
  };
  if (began === "new") await save({});
  const places = await placesOfCases(source.cases);
  if (source.data && target.data) {
    const data = { from: source.data, to: target.data };
    if (!state.events.isDone) await copyEvents(data, places, state, save, rowsOf(inventory.events), onProgress);
    if (state.places === null) await save({ places: await finishEvents(data, places, state) });
    if (!state.flows.isDone) await copyFlows(data, inventory, state, save, onProgress);
  }
  const known = state.places ?? {};
  const placeOf = (place: string) => (source.data ? (known[place] ?? place) : place);
  await copyCases(options, inventory, () => state, save, placeOf);
  if (!state.isPrepared) {
    await target.prepare((done, total) => onProgress("columns", done, total));
    await save({ isPrepared: true });
  }
  const outcome = await verify(source, target, placeOf, (done, total) => onProgress("verification", done, total));
  if (outcome.differences.length === 0 && state.completedAt === null) await save({ completedAt: now() });
  return { ...outcome, inventory, began };
}

async function begin(
  options: MigrationOptions,
): Promise<{ inventory: Inventory; began: MigrationOutcome["began"]; state: MigrationState }> {
  const { source, target, from, to, id, now } = options;
  await requirePlatform(options);
  await requireComplete(source, from);
  const inventory = await takeInventory(source);
  const print = await fingerprint(source, inventory);
  const state = await readState(target.notes);
  if (state === undefined) {
    const content = contentOf(await takeInventory(target));
    if (content.length > 0) {
      const list = content.map(({ kind, rows }) => `${rows.toLocaleString("en-US")} ${kind}`).join(", ");
      throw new MigrationRefused(
        `The target (${to}) already has data: ${list}. Nothing was written.\nEmpty it first, or name another one.`,
      );
    }
    return { inventory, began: "new", state: newState({ id, from, to, source: print, startedAt: now() }) };
  }
  if (state.from !== from || state.to !== to || state.source !== print) {
    const which = state.completedAt === null ? "is not complete" : "is complete";
    throw new MigrationRefused(
      `The target (${to}) has the data of another migration, from ${state.from} to ${state.to}, which ${which}; or the source has ` +
        "changed since, because a service ran on it. Nothing was written.\nEmpty the target to begin anew, or name another one.",
    );
  }
  return { inventory, began: state.completedAt === null ? "resumed" : "complete", state };
}

/** A source that is itself the target of a migration must be whole. */
async function requireComplete(source: StoreArchive, from: StoreName): Promise<void> {
  const state = await readState(source.notes);
  if (state !== undefined && state.completedAt === null) {
    throw new MigrationRefused(
      `The source (${from}) is the target of a migration from ${state.from} that is not complete. Finish that one first.`,
    );
  }
}

async function requirePlatform({ source, target, from, to, platform }: MigrationOptions): Promise<void> {
  for (const [archive, name] of [
    [source, from],
    [target, to],
  ] as const) {
    const word = await archive.cases.platformWord();
    if (word === undefined || word === "" || word === platform) continue;
    throw new MigrationRefused(
      `The platform word of ${name} is ${word}, not ${platform}: its events and rules have sources such as ${word}_network.\n` +
        `Use --platform ${word}${name === to ? ", or another target" : ""}.`,
    );
  }
}

interface DataPair {
  readonly from: NonNullable<StoreArchive["data"]>;
  readonly to: NonNullable<StoreArchive["data"]>;
}

type Save = (changes: Partial<MigrationState>) => Promise<void>;

/**
 * Copies events in the order of arrival. Before the first event after a place that cases refer to, the target marks what it has,
 * and the mark is saved: whatever is written later is after the mark, also if this process is killed in between.
 */
async function copyEvents(
  { from, to }: DataPair,
  { places }: CasePlaces,
  state: MigrationState,
  save: Save,
  total: number,
  onProgress: MigrationOptions["onProgress"],
): Promise<void> {
  let { events } = state;
  const report = () => onProgress("events", events.rows, total);
  const write = async (part: readonly ArrivedEvent[]) => {
    if (part.length === 0) return;
    const written = await to.events.write(part, events.written);
    events = { ...events, written, inPage: events.inPage + part.length, rows: events.rows + part.length };
  };
  const mark = async () => {
    const made = { place: places[events.marks.length]!, mark: await to.events.mark(events.written) };
    events = { ...events, marks: [...events.marks, made] };
    await save({ events });
  };
  report();
  for await (const page of from.events.read(events.read)) {
    const rest = page.events.slice(events.inPage);
    let start = 0;
    for (const [at, { place }] of rest.entries()) {
      if (place === null || !(events.marks.length < places.length && place > places[events.marks.length]!)) continue;
      await write(rest.slice(start, at));
      start = at;
      while (events.marks.length < places.length && place > places[events.marks.length]!) await mark();
    }
    await write(rest.slice(start));
    events = { ...events, read: page.cursor, inPage: 0 };
    await save({ events });
    report();
  }
  while (events.marks.length < places.length) await mark();
  await save({ events: { ...events, isDone: true } });
}

async function finishEvents(
  { to }: DataPair,
  { position }: CasePlaces,
  { events }: MigrationState,
): Promise<Record<string, string>> {
  const made = await to.events.finish({
    marks: events.marks.map(({ place, mark }) => ({ mark, atMs: timeOfId(place) })),
    processed: position === null ? 0 : events.marks.findIndex(({ place }) => place === position) + 1,
    fromMs: position === null ? 0 : timeOfId(position) - MEMORY_MS,
  });
  return Object.fromEntries(events.marks.map(({ place }, nth) => [place, made[nth]!]));
}

/** A page is a batch, which a store takes once. */
async function copyFlows(
  { from, to }: DataPair,
  inventory: Inventory,
  state: MigrationState,
  save: Save,
  onProgress: MigrationOptions["onProgress"],
): Promise<void> {
  const flows = { ...state.flows };
  const total = rowsOf(inventory.flows);
  onProgress("flows", flows.rows, total);
  for (const { day } of inventory.flows) {
    if (flows.day !== null && day < flows.day) continue;
    if (flows.day !== day) Object.assign(flows, { day, pages: 0 });
    let page = 0;
    for await (const part of from.flows.readDay(day)) {
      if (page++ < flows.pages) continue;
      await to.flows.append(flowRowsOf(part), `migration ${state.id} ${day} ${page}`);
      flows.pages = page;
      flows.rows += part.length;
      await save({ flows: { ...flows } });
      onProgress("flows", flows.rows, total);
    }
  }
  await save({ flows: { ...flows, isDone: true } });
}

async function copyCases(
  { source, target, onProgress }: MigrationOptions,
  { cases }: Inventory,
  state: () => MigrationState,
  save: Save,
  placeOf: (place: string) => string,
): Promise<void> {
  const total = rowsOf(cases);
  let done = 0;
  for (const kind of CASE_KINDS) {
    const rows = cases.find((each) => each.kind === kind)?.rows ?? 0;
    if (state().cases.includes(kind)) {
      done += rows;
      continue;
    }
    for await (const records of source.cases.read(kind)) {
      await target.cases.write(
        kind,
        records.map((record) => withPlaces(kind, record, placeOf)),
      );
      done += records.length;
      onProgress("cases", done, total);
    }
    await save({ cases: [...state().cases, kind] });
  }
  const word = await source.cases.platformWord();
  if (word !== undefined) await target.cases.keepPlatformWord(word);
}
